#include "util/quota.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;

TEST_CASE("quota: an owner at its limit leaves room for others") {
  Quota quota(2);
  const auto first = quota.claim("alice");
  auto second = quota.claim("alice");
  CHECK(first);
  CHECK(second);
  CHECK(!quota.claim("alice"));
  CHECK(quota.claim("bob"));
  second = nullptr;
  CHECK(quota.claim("alice"));
}

TEST_CASE("quota: the limit for all owners holds, and a rejected claim takes nothing") {
  Quota quota(6, 10);
  const auto alice = quota.claim("alice", 6);
  REQUIRE(alice);
  CHECK(!alice->grow(1));
  CHECK(!quota.claim("bob", 5));
  const auto bob = quota.claim("bob", 3);
  REQUIRE(bob);
  CHECK(bob->grow(1));
  CHECK(!bob->grow(1));
  CHECK(bob->units() == 4);
}

TEST_CASE("quota: a claim may outlive its quota") {
  auto quota = std::make_unique<Quota>(1);
  const auto claim = quota->claim("alice");
  quota = nullptr;
  CHECK(claim->units() == 1);
}

TEST_CASE("rate: a burst of one second, then refilled evenly") {
  Rate rate(4);
  const Clock::time_point start{};
  for (int i = 0; i < 4; ++i) {
    CHECK(rate.allows("alice", start));
  }
  CHECK(!rate.allows("alice", start));
  CHECK(rate.allows("bob", start));
  CHECK(!rate.allows("alice", start + milliseconds(249)));
  CHECK(rate.allows("alice", start + milliseconds(250)));
  CHECK(!rate.allows("alice", start + milliseconds(250)));
}

TEST_CASE("rate: unused time counts for one second only") {
  Rate rate(2);
  const Clock::time_point start{};
  CHECK(rate.allows("alice", start));
  const auto later = start + std::chrono::hours(1);
  CHECK(rate.allows("alice", later));
  CHECK(rate.allows("alice", later));
  CHECK(!rate.allows("alice", later));
}

TEST_CASE("rate: a time before the last one refills nothing") {
  Rate rate(1);
  const Clock::time_point start{};
  CHECK(rate.allows("alice", start + seconds(1)));
  CHECK(!rate.allows("alice", start));
  CHECK(!rate.allows("alice", start + seconds(1)));
  CHECK(rate.allows("alice", start + seconds(2)));
}
