#include "mcp/message.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>

using namespace dockbridge::mcp;
using dockbridge::test::field;

namespace {

Message message_of(const std::string& text) {
  auto parsed = parse_json(text);
  REQUIRE(std::holds_alternative<json>(parsed));
  return to_message(std::get<json>(std::move(parsed)));
}

Request request_of(const std::string& text) {
  const Message message = message_of(text);
  REQUIRE(std::holds_alternative<Request>(message));
  return std::get<Request>(message);
}

Malformed malformed_of(const std::string& text) {
  const Message message = message_of(text);
  REQUIRE(std::holds_alternative<Malformed>(message));
  return std::get<Malformed>(message);
}

Malformed unparsable(const std::string& text) {
  const auto parsed = parse_json(text);
  REQUIRE(std::holds_alternative<Malformed>(parsed));
  return std::get<Malformed>(parsed);
}

std::string nested(int levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST_CASE("message: a request has an id, a method and params") {
  const Request request = request_of(R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}})");
  CHECK(request.id == 7);
  CHECK(request.method == "tools/call");
  CHECK(request.params == json{{"name", "x"}});
}

TEST_CASE("message: absent or null params are an empty object") {
  CHECK(request_of(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").params == json::object());
  CHECK(request_of(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":null})").params == json::object());
}

TEST_CASE("message: an id keeps its type and its last digit") {
  for (const std::string id : {"0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808",
                               "18446744073709551615", "\"\"", "\"1\"", "\"ä\\n\""}) {
    CAPTURE(id);
    const Request request = request_of(R"({"jsonrpc":"2.0","method":"ping","id":)" + id + "}");
    CHECK(request.id == json::parse(id));
    CHECK(field(result_message(request.id, 1), "id").dump() == json::parse(id).dump());
  }
}

TEST_CASE("message: an id that no reply can represent is refused") {
  for (const std::string id : {"null", "1.5", "1e3", "18446744073709551616", "true", "[]", "{}"}) {
    CAPTURE(id);
    const Malformed malformed = malformed_of(R"({"jsonrpc":"2.0","method":"ping","id":)" + id + "}");
    CHECK(malformed.code == k_invalid_request);
    CHECK(malformed.id == nullptr);
    CHECK(malformed.reason.find("'id'") != std::string::npos);
  }
}

TEST_CASE("message: without an id it is a notification") {
  const Message message =
      message_of(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  REQUIRE(std::holds_alternative<Notification>(message));
  CHECK(std::get<Notification>(message).method == "notifications/cancelled");
  CHECK(field(std::get<Notification>(message).params, "requestId") == 1);
}

TEST_CASE("message: an answer is kept completely, under its id") {
  for (const std::string text : {R"({"jsonrpc":"2.0","id":1,"result":{}})", R"({"jsonrpc":"2.0","id":1,"error":{}})",
                                 R"({"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}})"}) {
    REQUIRE(std::holds_alternative<Answer>(message_of(text)));
    CHECK(std::get<Answer>(message_of(text)).message == json::parse(text));
  }
}

TEST_CASE("message: invalid input is refused under its own id") {
  for (const std::string text :
       {R"({"id":5})", R"({"jsonrpc":"1.0","id":5,"method":"ping"})", R"({"jsonrpc":2.0,"id":5,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":5})", R"({"jsonrpc":"2.0","id":5,"method":null})",
        R"({"jsonrpc":"2.0","id":5,"method":["ping"]})"}) {
    CAPTURE(text);
    const Malformed malformed = malformed_of(text);
    CHECK(malformed.code == k_invalid_request);
    CHECK(malformed.id == 5);
  }
  for (const std::string text : {"1", "null", "\"text\"", "[]", "{}"}) {
    CAPTURE(text);
    const Malformed malformed = malformed_of(text);
    CHECK(malformed.code == k_invalid_request);
    CHECK(malformed.id == nullptr);
  }
}

TEST_CASE("message: params of another type are invalid params") {
  for (const std::string params : {"[]", "1", "\"x\"", "false"}) {
    const Malformed malformed = malformed_of(R"({"jsonrpc":"2.0","id":"a","method":"ping","params":)" + params + "}");
    CHECK(malformed.code == k_invalid_params);
    CHECK(malformed.id == "a");
  }
}

TEST_CASE("message: text that is not JSON is a parse error without an id") {
  for (const std::string text : {"", "{", "{}{}", "{\"a\":1,}", "nul", "// comment\n{}", "\"\xff\"", "'x'"}) {
    CAPTURE(text);
    const Malformed malformed = unparsable(text);
    CHECK(malformed.code == k_parse_error);
    CHECK(malformed.id == nullptr);
  }
}

TEST_CASE("message: JSON may be nested 64 levels deep, but not deeper") {
  CHECK(std::holds_alternative<json>(parse_json(nested(64))));
  CHECK(unparsable(nested(65)).code == k_invalid_request);
  CHECK(unparsable(std::string(1'000'000, '[')).code == k_invalid_request);
}

TEST_CASE("message: an answer has its id, and data only if there is any") {
  CHECK(result_message("a", {{"x", 1}}) == json::parse(R"({"jsonrpc":"2.0","id":"a","result":{"x":1}})"));
  CHECK(error_message(1, -32600, "no") ==
        json::parse(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}})"));
  CHECK(field(error_message(2, 1, "no", {{"supported", "x"}}), "error", "data", "supported") == "x");
}

TEST_CASE("message: an error for an unknown id has no id, because clients refuse null") {
  CHECK(error_message(nullptr, -32700, "no") ==
        json::parse(R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}})"));
}

TEST_CASE("message: the text is one line, and invalid UTF-8 is replaced") {
  const std::string text = dump({{"text", "two\nlines ä \xff"}});
  CHECK(text == "{\"text\":\"two\\nlines ä \xEF\xBF\xBD\"}");
}

TEST_CASE("message: a notification with positional params gets no reply") {
  const Message message = message_of(R"({"jsonrpc":"2.0","method":"notifications/x","params":[1]})");
  CHECK_FALSE(std::holds_alternative<Malformed>(message));
}

TEST_CASE("message: an id of more than 1000 bytes is refused") {
  const auto with_id = [](std::size_t bytes) {
    return message_of(R"({"jsonrpc":"2.0","method":"ping","id":")" + std::string(bytes, 'x') + R"("})");
  };
  CHECK(std::holds_alternative<Request>(with_id(1000)));
  CHECK(std::holds_alternative<Malformed>(with_id(1001)));
}
