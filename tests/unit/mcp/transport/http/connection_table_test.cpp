#include "mcp/transport/http/connection_table.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace dockbridge;
using namespace dockbridge::mcp::http;

namespace {

constexpr Clock::time_point k_first_time{std::chrono::hours(1)};

Clock::time_point at(int second) {
  return k_first_time + seconds(second);
}

}  // namespace

TEST_CASE("connections: a new one evicts the one that has waited longest") {
  ConnectionTable table(3, 3);
  const auto first = table.admit("10.0.0.1", at(0));
  const auto second = table.admit("10.0.0.1", at(1));
  const auto third = table.admit("10.0.0.1", at(2));
  REQUIRE(third);
  CHECK_FALSE(third->evicted);
  CHECK(table.begin_request(first->id));
  table.end_request(first->id, at(3));
  const auto fourth = table.admit("10.0.0.1", at(4));
  REQUIRE(fourth);
  CHECK(fourth->evicted == second->id);
  CHECK_FALSE(table.begin_request(second->id));
  CHECK(table.admit("10.0.0.1", at(5))->evicted == third->id);
  CHECK(table.admit("10.0.0.1", at(6))->evicted == first->id);
  CHECK(table.size() == 3);
}

TEST_CASE("connections: one that serves a request is never evicted") {
  ConnectionTable table(2, 2);
  const auto first = table.admit("10.0.0.1", at(0));
  const auto second = table.admit("10.0.0.1", at(1));
  CHECK(table.begin_request(first->id));
  CHECK(table.begin_request(second->id));
  CHECK_FALSE(table.admit("10.0.0.1", at(2)));
  CHECK_FALSE(table.admit("10.0.0.2", at(2)));
  CHECK_FALSE(table.evict());
  table.end_request(second->id, at(3));
  CHECK(table.admit("10.0.0.2", at(4))->evicted == second->id);
}

TEST_CASE("connections: an address at its limit evicts only its own") {
  ConnectionTable table(10, 2);
  const auto other = table.admit("10.0.0.2", at(0));
  const auto first = table.admit("10.0.0.1", at(1));
  table.admit("10.0.0.1", at(2));
  CHECK(table.admit("10.0.0.1", at(3))->evicted == first->id);
  CHECK(table.size() == 3);
  CHECK(table.begin_request(other->id));
}

TEST_CASE("connections: at the total limit the address with the most loses an idle one") {
  ConnectionTable table(4, 3);
  const auto single = table.admit("10.0.0.2", at(0));
  const auto first = table.admit("10.0.0.1", at(1));
  table.admit("10.0.0.1", at(2));
  table.admit("10.0.0.1", at(3));
  CHECK(table.admit("10.0.0.3", at(4))->evicted == first->id);
  CHECK(table.begin_request(single->id));
}

TEST_CASE("connections: an address at its limit takes no idle one of another address") {
  ConnectionTable table(10, 2);
  const auto busy = table.admit("10.0.0.1", at(0));
  const auto idle = table.admit("10.0.0.1", at(1));
  table.admit("10.0.0.2", at(0));
  table.admit("10.0.0.2", at(0));
  CHECK(table.begin_request(busy->id));
  const auto next = table.admit("10.0.0.1", at(2));
  REQUIRE(next);
  CHECK(next->evicted == idle->id);
  CHECK(table.begin_request(next->id));
  CHECK_FALSE(table.admit("10.0.0.1", at(3)));
}

TEST_CASE("connections: at the total limit only idle ones count for an address") {
  ConnectionTable table(4, 3);
  const auto idle = table.admit("10.0.0.2", at(0));
  for (int i = 0; i < 3; ++i) {
    CHECK(table.begin_request(table.admit("10.0.0.1", at(1))->id));
  }
  const auto next = table.admit("10.0.0.3", at(2));
  REQUIRE(next);
  CHECK(next->evicted == idle->id);
}

TEST_CASE("connections: a removed connection frees its place") {
  ConnectionTable table(1, 1);
  for (int i = 0; i < 5; ++i) {
    const auto admitted = table.admit("10.0.0.1", at(i));
    REQUIRE(admitted);
    CHECK_FALSE(admitted->evicted);
    CHECK(table.begin_request(admitted->id));
    table.remove(admitted->id);
    table.remove(admitted->id);
  }
  CHECK(table.size() == 0);
}

TEST_CASE("connections: an IPv6 client counts by its /64") {
  CHECK(address_group("2001:db8::1") == address_group("2001:db8::ffff:1"));
  CHECK(address_group("2001:db8::1") == address_group("2001:db8::ffff:0:0:1"));
  CHECK(address_group("2001:db8::1") != address_group("2001:db8:0:1::1"));
  CHECK(address_group("10.0.0.1") != address_group("10.0.0.2"));
  CHECK(address_group("::ffff:10.0.0.1") != address_group("::ffff:10.0.0.2"));
}
