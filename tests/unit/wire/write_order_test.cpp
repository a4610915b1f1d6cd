#include "wire/write_order.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "wire/process_state.hpp"

using namespace dockbridge;
using nlohmann::json;
using wire::k_max_order_marks;
using wire::k_max_stream_bytes;

namespace {

Result<wire::WriteOrder> write_order_from_json(const json& value) {
  return wire::read_fields(value, ErrorCode::protocol_violation, wire::write_order_from);
}

}  // namespace

TEST_CASE("write order: survives the round trip") {
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

TEST_CASE("write order: malformed marks are rejected") {
  for (const json& value :
       {json(nullptr), json("1,2"), json::object(), json::array({1}), json::array({1, 2, 3}), json::array({-1, 2}),
        json::array({1.5, 2}), json::array({"1", 2}), json::array({1, nullptr}), json::array({json::array({1, 2})}),
        json::array({2, 2, 1, 3}), json::array({2, 2, 3, 1}), json::array({k_max_stream_bytes + 1, 0}),
        json::array({0, k_max_stream_bytes + 1}), json(json::array_t(2 * k_max_order_marks + 2, 1))}) {
    CAPTURE(value.dump().substr(0, 100));
    const auto order = write_order_from_json(json::parse(value.dump()));  // numbers have the types of a parsed frame
    REQUIRE_FALSE(order);
    CHECK(order.error().code == ErrorCode::protocol_violation);
  }
}
