#include "wire/route.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/wire/messages.hpp"
#include "wire/frame.hpp"

using namespace dockbridge;
using nlohmann::json;
using test::nested;
using wire::Route;
using wire::route_of;

namespace {

Route route(const std::string& head) {
  const auto found = route_of(head);
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("route: a request has id, op and staging") {
  const Route found =
      route(R"({"edits":[[1,2,true]],"id":7,"op":"file.stage","path":"/id","staging":"t","x":{"id":9}})");
  CHECK(found.id == 7);
  CHECK(found.operation == wire::Operation::file_stage);
  CHECK_FALSE(found.unknown_operation);
  CHECK(found.staging == "t");
  CHECK_FALSE(found.is_staging);
  CHECK_FALSE(found.is_error);
}

TEST_CASE("route: an answer has id, staging and the code of an error") {
  const Route staged = route(R"({"id":7,"staging":true})");
  CHECK(staged.is_staging);
  CHECK(staged.staging.empty());
  const Route failed = route(R"({"error":{"code":"half_written","detail":{"code":"x"},"message":""},"id":7})");
  CHECK(failed.is_error);
  CHECK(failed.error_code == ErrorCode::half_written);
  CHECK(failed.id == 7);
}

TEST_CASE("route: a field of another type, or in another object, counts as absent") {
  const Route found =
      route(R"({"id":"7","op":5,"staging":{"staging":true},"error":null,"list":[{"code":"io_error","id":1}]})");
  CHECK_FALSE(found.id);
  CHECK_FALSE(found.operation);
  CHECK_FALSE(found.unknown_operation);
  CHECK(found.staging.empty());
  CHECK_FALSE(found.is_staging);
  CHECK(found.is_error);
  CHECK_FALSE(found.error_code);
  CHECK_FALSE(route(R"({"id":-7})").id);
  CHECK_FALSE(route(R"({"id":[7]})").id);
  CHECK_FALSE(route(R"({"error":["io_error"],"x":{"code":"io_error"}})").error_code);
}

TEST_CASE("route: the name of an operation that does not exist is kept") {
  const Route found = route(R"({"op":"file.shred"})");
  CHECK_FALSE(found.operation);
  CHECK(found.unknown_operation == "file.shred");
  CHECK(route(R"({"op":""})").unknown_operation == "");
}

TEST_CASE("route: the last of several fields with the same name counts") {
  CHECK(route(R"({"id":1,"id":2})").id == 2);
  CHECK_FALSE(route(R"({"id":1,"id":"2"})").id);
  CHECK_FALSE(route(R"({"staging":true,"staging":false})").is_staging);
  CHECK_FALSE(route(R"({"error":{"code":"io_error"},"error":{}})").error_code);
}

TEST_CASE("route: accepts the same heads as a frame reader") {
  std::vector<std::string> heads = {
      "{}",
      " {\"a\" : 1 } ",
      "\xEF\xBB\xBF{}",
      "",
      "1",
      "null",
      "true",
      "\"x\"",
      "[]",
      "[{}]",
      "{",
      "{}{}",
      "{/**/}",
      "{\"a\":\"\xff\"}",
      R"({"a":"\ud800"})",
      R"({"a":01})",
      R"({"a":1e999})",
      R"({"a":123456789012345678901234567890})",
      R"({"a":nul})",
      R"({"a":1,})",
      R"({"a":"\u0041\n"})",
      nested(wire::k_max_head_depth),
      nested(wire::k_max_head_depth + 1),
      "{\"a\":" + std::string(wire::k_max_head_depth - 1, '[') + std::string(wire::k_max_head_depth - 1, ']') + "}",
      "{\"a\":" + std::string(30'000, '[') + std::string(30'000, ']') + "}"};
  for (const std::string& head : heads) {
    CAPTURE(head.substr(0, 100));
    CHECK(route_of(head).has_value() == wire::parse_bounded(head, wire::k_max_head_depth).has_value());
  }
}

TEST_CASE("raw frame: forwarded byte for byte") {
  const std::string first = wire::encode(json{{"id", 1}}, std::string("b\0dy", 4));
  const std::string second = wire::encode(json{{"id", 2}});
  wire::FrameReader reader(10);
  reader.feed(first + second.substr(0, second.size() - 1));
  const auto raw = reader.next_raw();
  REQUIRE(raw);
  REQUIRE(*raw);
  CHECK((*raw)->bytes() == first);
  CHECK((*raw)->head() == R"({"id":1})");
  CHECK((*raw)->body() == std::string_view("b\0dy", 4));
  CHECK_FALSE(*reader.next_raw());
  reader.feed(second.substr(second.size() - 1));
  CHECK((*reader.next_raw())->bytes() == second);
}

TEST_CASE("raw frame: an excessive length is rejected") {
  wire::FrameReader reader(10);
  reader.feed(wire::encode(json{{"id", 1}}, "eleven byte").substr(0, 8));
  const auto raw = reader.next_raw();
  REQUIRE_FALSE(raw);
  CHECK(raw.error().code == ErrorCode::protocol_violation);
}
