#include "wire/write_order.hpp"

#include <doctest/doctest.h>

#include "wire/process_state.hpp"

using namespace dockbridge;
using nlohmann::json;
using wire::k_max_order_marks;
using wire::k_max_stream_bytes;
using wire::write_order_from_json;

TEST_CASE("write order: survives the way over the wire") {
  const wire::WriteOrder order = {{0, 3}, {3, 3}, {k_max_stream_bytes, k_max_stream_bytes}};
  const auto read = write_order_from_json(json::parse(to_json(order).dump()));
  REQUIRE(read);
  REQUIRE(read->size() == order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK((*read)[i].out == order[i].out);
    CHECK((*read)[i].err == order[i].err);
  }
  CHECK(write_order_from_json(json::array())->empty());
  CHECK(write_order_from_json(json(json::array_t(2 * k_max_order_marks, 1U)))->size() == k_max_order_marks);
}

TEST_CASE("write order: what no agent sends is a violation") {
  for (const json& value :
       {json(nullptr), json("1,2"), json::object(), json::array({1}), json::array({1, 2, 3}), json::array({-1, 2}),
        json::array({1.5, 2}), json::array({"1", 2}), json::array({1, nullptr}), json::array({json::array({1, 2})}),
        json::array({2, 2, 1, 3}), json::array({2, 2, 3, 1}), json::array({k_max_stream_bytes + 1, 0}),
        json::array({0, k_max_stream_bytes + 1}), json(json::array_t(2 * k_max_order_marks + 2, 1))}) {
    CAPTURE(value.dump().substr(0, 100));
    const auto order = write_order_from_json(json::parse(value.dump()));  // numbers as they come from a frame
    REQUIRE_FALSE(order);
    CHECK(order.error().code == ErrorCode::protocol_violation);
  }
}
