#include "agent/order_page.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "wire/process_state.hpp"

using namespace dockbridge;
using agent::OrderPage;
using wire::WriteOrder;

namespace {

bool never_goes_back(const WriteOrder& order) {
  wire::OrderMark last;
  for (const wire::OrderMark& mark : order) {
    if (mark.out < last.out || mark.err < last.err || mark.out > wire::k_max_stream_bytes ||
        mark.err > wire::k_max_stream_bytes) {
      return false;
    }
    last = mark;
  }
  return order.size() <= wire::k_max_order_marks;
}

}  // namespace

TEST_CASE("order page: stderr without stdout in between is one run") {
  OrderPage page;
  CHECK(page.marks().empty());
  page.note(0, 4);
  page.note(0, 9);
  page.note(7, 10);
  page.note(7, 11);
  page.note(8, 12);
  const WriteOrder order = page.marks();
  REQUIRE(order.size() == 3);
  CHECK(order[0].out == 0);
  CHECK(order[0].err == 9);
  CHECK(order[1].out == 7);
  CHECK(order[1].err == 11);
  CHECK(order[2].out == 8);
  CHECK(order[2].err == 12);
}

TEST_CASE("order page: keeps the first and the latest marks of a million") {
  OrderPage page;
  constexpr std::uint64_t k_runs = 1'000'000;
  for (std::uint64_t i = 1; i <= k_runs; ++i) {
    page.note(i, 2 * i);
  }
  const WriteOrder order = page.marks();
  REQUIRE(order.size() == 250);
  CHECK(never_goes_back(order));
  CHECK(order[0].out == 1);
  CHECK(order[122].out == 123);
  CHECK(order[123].out == k_runs - 126);
  CHECK(order[249].out == k_runs);
  CHECK(order[249].err == 2 * k_runs);
}

TEST_CASE("order page: every number of marks is kept up to the bound") {
  OrderPage page;
  for (std::uint64_t i = 1; i <= 600; ++i) {
    page.note(i, i);
    const WriteOrder order = page.marks();
    REQUIRE(order.size() == std::min<std::uint64_t>(i, 250));
    REQUIRE(order.back().out == i);
    REQUIRE(never_goes_back(order));
  }
}

TEST_CASE("order page: arbitrary content is read and written within its bounds") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 1000; ++round) {
    alignas(OrderPage) std::array<std::uint64_t, sizeof(OrderPage) / 8> words{};
    for (std::uint64_t& word : words) {
      word = random() >> (random() % 64);
    }
    words[0] = round % 3 == 0 ? ~std::uint64_t{0} : words[0];
    OrderPage page;
    std::memcpy(static_cast<void*>(&page), words.data(), sizeof page);
    CHECK(never_goes_back(page.marks()));
    page.note(5, 6);
    page.note(7, 8);
    CHECK(never_goes_back(page.marks()));
  }
}
