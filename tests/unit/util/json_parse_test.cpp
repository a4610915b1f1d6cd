#include "util/json_parse.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "util/json_memory.hpp"

using namespace dockbridge;
using nlohmann::json;

namespace {

constexpr int k_deep_enough = 64;

/// Checks that both parsers return the same value of the same type, or both reject the text.
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

TEST_CASE("json_parse: accepts and rejects the same texts as the library") {
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

TEST_CASE("json_parse: a NUL byte does not end the text, unlike in the library") {
  CHECK(parse_json_text(std::string("1\0", 2), k_deep_enough).value.is_discarded());
  CHECK(parse_json_text(std::string("{}\0{}", 5), k_deep_enough).value.is_discarded());
}

TEST_CASE("json_parse: agrees with the library on mutated texts") {
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

TEST_CASE("json_parse: depth is checked before values are created") {
  const auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(parse_json_text(nested(64), 64).value.is_array());
  CHECK(parse_json_text(nested(64), 64).problem == ParsedJson::Problem::none);
  CHECK(parse_json_text(nested(65), 64).value.is_discarded());
  CHECK(parse_json_text(nested(65), 64).problem == ParsedJson::Problem::too_deep);
  CHECK(parse_json_text(std::string(10'000'000, '['), 64).problem == ParsedJson::Problem::too_deep);
  CHECK(parse_json_text("\"[[[[[[[[[[\"", 4).problem == ParsedJson::Problem::none);
}

namespace {

struct Counted {
  ParsedJson parsed;
  std::size_t claimed = 0;
};

Counted parse_counted(const std::string& text, std::size_t limit) {
  Counted counted;
  counted.parsed = parse_json_text(text, k_deep_enough, {limit, [&](std::size_t bytes) {
                                                           counted.claimed += bytes;
                                                           return true;
                                                         }});
  return counted;
}

std::string many(const std::string& value, std::size_t count) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) {
    text += value + ",";
  }
  return text + value + "]";
}

}  // namespace

TEST_CASE("json_parse: the claimed memory is at least the size of the value") {
  for (const char* value :
       {"0", "[]", "{}", "[0]", "[[0,1],[]]", R"({"":0})", R"({"a":{"b":[]}})", R"("")", R"("0123456789abcdef")",
        R"("a\u00e4\n and some more text than fits")", R"({"a key that is longer than fifteen bytes":null})"}) {
    CAPTURE(value);
    for (const std::size_t count : {0, 1, 5, 1000, 50'000}) {
      const std::string text = many(value, count);
      const Counted counted = parse_counted(text, 1UL << 30U);
      REQUIRE(counted.parsed.problem == ParsedJson::Problem::none);
      CHECK(counted.claimed >= json_heap_bytes(counted.parsed.value));
    }
  }
}

TEST_CASE("json_parse: the parse ends at the limit before more values are created") {
  constexpr std::size_t k_limit = 1'000'000;
  for (const char* value : {"[]", "{}", "[0]", R"({"":0})", R"("")", "0", R"("0123456789abcdef")"}) {
    CAPTURE(value);
    const Counted counted = parse_counted(many(value, 1'000'000), k_limit);
    CHECK(counted.parsed.problem == ParsedJson::Problem::too_large);
    CHECK(counted.parsed.value.is_discarded());
    CHECK(counted.claimed <= k_limit + 16 * 1024);
  }
}

TEST_CASE("json_parse: a long text is allocated once, with and without escapes") {
  std::string escaped;
  std::string only_escapes;
  for (int i = 0; i < 100'000; ++i) {
    escaped += R"(a line of text that ends\n)";
    only_escapes += R"(\n\n\u00e4\u20ac\ud83d\ude00)";
  }
  for (const std::string& content :
       {std::string(3'000'000, 'x'), escaped, only_escapes, R"(\")" + std::string(3'000'000, 'x'),
        std::string(3'000'000, 'x') + R"(\\)", std::string(3'000'000, 'x') + R"(\n\n)"}) {
    const std::string text = R"({"content": ")" + content + R"("})";
    const Counted counted = parse_counted(text, text.size() + 1000);
    REQUIRE(counted.parsed.problem == ParsedJson::Problem::none);
    CHECK(counted.claimed <= text.size() + 17 * 1024);
    CHECK(counted.claimed >= json_heap_bytes(counted.parsed.value));
    CHECK(counted.parsed.value == json::parse(text));
  }
}

TEST_CASE("json_parse: an unterminated text or number is not JSON") {
  for (const std::string& text : {'"' + std::string(1'000'000, 'x'), "\"" + std::string(999'999, '\\'),
                                  "-" + std::string(1'000'000, '1') + "x", std::string("\"\\")}) {
    CHECK(parse_json_text(text, k_deep_enough).problem == ParsedJson::Problem::not_json);
  }
}

TEST_CASE("json_parse: a rejected claim ends the parse") {
  std::size_t claims = 0;
  const JsonBudget budget{1UL << 30U, [&](std::size_t) { return ++claims < 3; }};
  CHECK(parse_json_text(many("[]", 100'000), k_deep_enough, budget).problem == ParsedJson::Problem::no_room);
  CHECK(claims == 3);
}
