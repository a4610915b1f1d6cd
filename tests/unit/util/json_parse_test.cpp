#include "util/json_parse.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace dockbridge;
using nlohmann::json;

namespace {

constexpr int k_deep_enough = 64;

/// The same value, of the same type, as the library's own parser makes of it; or refused by both.
void check_like_library(const std::string& text) {
  CAPTURE(text);
  const json expected = json::parse(text, nullptr, false);
  const ParsedJson parsed = parse_json_text(text, k_deep_enough);
  REQUIRE(parsed.value.is_discarded() == expected.is_discarded());
  if (!expected.is_discarded()) {
    CHECK(parsed.value == expected);
    CHECK(parsed.value.type() == expected.type());
    CHECK(parsed.value.dump() == expected.dump());
  }
}

}  // namespace

TEST_CASE("what is JSON, and what is not, is what the library says") {
  for (const char* text : {"",
                           " ",
                           "null",
                           "nul",
                           "nulll",
                           "true",
                           "false",
                           "tru",
                           "0",
                           "-0",
                           "00",
                           "01",
                           "-",
                           "-1",
                           "1.5",
                           "1.",
                           ".5",
                           "1e5",
                           "1E+5",
                           "1e-5",
                           "1e",
                           "1e+",
                           "-1.25e2",
                           "1e400",
                           "-1e400",
                           "1e-400",
                           "+1",
                           "0x10",
                           "NaN",
                           "Infinity",
                           "1 2",
                           "1,",
                           "\"\"",
                           "\"a",
                           "\"a\\",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u00e4\"",
                           "\"\\uD83D\"",
                           "\"\\uD83D\\uDE00\"",
                           "\"\\uDE00\"",
                           "\"\\uD83Dx\"",
                           "\"\\uD83D\\u0041\"",
                           "\"\\u0000\"",
                           "\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"",
                           "\"a\tb\"",
                           "\"a\nb\"",
                           "\"\xC3\xA4\"",
                           "\"\xC3\"",
                           "\"\xFF\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xF4\x90\x80\x80\"",
                           "\xEF\xBB\xBF{}",
                           "{}",
                           "{ }",
                           "{\"a\":1}",
                           "{\"a\":1,}",
                           "{\"a\" : [ 1 , 2 ] }",
                           "{a:1}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{,}",
                           "[]",
                           "[ ]",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[[],{}]",
                           "[",
                           "]",
                           "{\"a\":1,\"a\":2}",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "9223372036854775808",
                           "123456789012345678901234567890",
                           "/* c */ 1",
                           "'a'"}) {
    check_like_library(text);
  }
  check_like_library(std::string("\"a\0b\"", 5));
}

TEST_CASE("a NUL byte does not end a text, as it does for the library") {
  CHECK(parse_json_text(std::string("1\0", 2), k_deep_enough).value.is_discarded());
  CHECK(parse_json_text(std::string("{}\0{}", 5), k_deep_enough).value.is_discarded());
}

TEST_CASE("JSON with a few bytes changed is taken or refused as the library does it") {
  const std::string original =
      R"({"jsonrpc":"2.0","id":-12,"method":"tools/call","params":{"name":"x","arguments":{"text":"a\n\"b\" \u00e4 ä €","n":[1,2.5e3,true,null,{"k":[]}]}}})";
  std::mt19937 random(11);
  const std::string alphabet = "{}[]\",:\\u0123456789eE+-.tfnl \n\x01\x7f\xC3\xA4\xFF";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = original;
    for (unsigned change = random() % 3 + 1; change > 0; --change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1);
          break;
        default:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
      }
    }
    check_like_library(text);
  }
}

TEST_CASE("depth is bounded before anything is made of it") {
  const auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(parse_json_text(nested(64), 64).value.is_array());
  CHECK_FALSE(parse_json_text(nested(64), 64).too_deep);
  CHECK(parse_json_text(nested(65), 64).value.is_discarded());
  CHECK(parse_json_text(nested(65), 64).too_deep);
  CHECK(parse_json_text(std::string(10'000'000, '['), 64).too_deep);
  CHECK_FALSE(parse_json_text("\"[[[[[[[[[[\"", 4).too_deep);
}
