#include "wire/frame.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/wire/messages.hpp"

using namespace dockbridge;
using dockbridge::test::field;
using nlohmann::json;
using test::nested;
using wire::Frame;
using wire::FrameReader;

namespace {

/// The eight bytes before a frame's head.
std::string prefix(std::uint32_t head_bytes, std::uint32_t body_bytes) {
  std::string bytes;
  for (const std::uint32_t length : {head_bytes, body_bytes}) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>((length >> shift) & 0xFFU));
    }
  }
  return bytes;
}

/// A frame whose head is any text, valid or not.
std::string raw_frame(const std::string& head) {
  return prefix(static_cast<std::uint32_t>(head.size()), 0) + head;
}

Frame next_frame(FrameReader& reader) {
  auto frame = reader.next();
  REQUIRE(frame);
  REQUIRE(*frame);
  return std::move(**frame);
}

bool wants_more(FrameReader& reader) {
  const auto frame = reader.next();
  REQUIRE(frame);
  return !*frame;
}

std::string violation(FrameReader& reader) {
  const auto frame = reader.next();
  REQUIRE_FALSE(frame);
  return std::string(name_of(frame.error().code));
}

}  // namespace

TEST_CASE("frame: two little-endian lengths, the head as JSON text, the raw body") {
  const std::string body("\0\xff\n", 3);
  CHECK(wire::encode(json{{"id", 7}}, body) == std::string("\x08\0\0\0\x03\0\0\0", 8) + "{\"id\":7}" + body);
}

TEST_CASE("frame: survives the round trip") {
  const json head = {{"id", 1}, {"op", "start"}, {"cwd", "/ä\n"}};
  const std::string body(100'000, '\x80');
  FrameReader reader(wire::k_max_body_to_agent);
  reader.feed(wire::encode(head, body));
  const Frame frame = next_frame(reader);
  CHECK(frame.head == head);
  CHECK(frame.body == body);
  CHECK(wants_more(reader));
}

TEST_CASE("frame: invalid UTF-8 in the head is replaced") {
  FrameReader reader(0);
  reader.feed(wire::encode(json{{"cwd", "/a\xff"}}));
  CHECK(field(next_frame(reader).head, "cwd") == "/a\xEF\xBF\xBD");
}

TEST_CASE("frame reader: accepts pieces of any size") {
  std::string stream;
  std::vector<std::string> bodies;
  for (int i = 0; i < 20; ++i) {
    bodies.emplace_back(static_cast<std::size_t>(i * i), static_cast<char>('a' + i));
    stream += wire::encode(json{{"id", i}}, bodies.back());
  }
  for (const std::size_t piece : {1U, 3U, 7U, 64U, 1000U, 100'000U}) {
    CAPTURE(piece);
    FrameReader reader(1000);
    std::size_t received = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
        REQUIRE(received < bodies.size());
        CHECK(field((*frame)->head, "id") == received);
        CHECK((*frame)->body == bodies[received]);
        ++received;
      }
    }
    CHECK(received == bodies.size());
    CHECK(wants_more(reader));
  }
}

TEST_CASE("frame reader: returns no frame before its last byte") {
  const std::string bytes = wire::encode(json{{"id", 1}}, "body");
  FrameReader reader(100);
  CHECK(wants_more(reader));
  for (const char byte : bytes) {
    CHECK(wants_more(reader));
    reader.feed({&byte, 1});
  }
  CHECK(next_frame(reader).body == "body");
}

TEST_CASE("frame reader: accepts a frame of exactly the maximum size") {
  const std::string shell_of_head = R"({"a":""})";
  const std::string head = R"({"a":")" + std::string(wire::k_max_head_bytes - shell_of_head.size(), 'x') + "\"}";
  FrameReader reader(10);
  reader.feed(prefix(wire::k_max_head_bytes, 10) + head + "0123456789");
  CHECK(next_frame(reader).body == "0123456789");
}

TEST_CASE("frame reader: rejects an excessive length before the content arrives") {
  FrameReader reader(10);
  SUBCASE("of the head") {
    reader.feed(prefix(wire::k_max_head_bytes + 1, 0));
  }
  SUBCASE("of the body") {
    reader.feed(prefix(2, 11));
  }
  SUBCASE("of both, so that their sum would not fit 32 bits") {
    reader.feed(prefix(0xFFFFFFFF, 0xFFFFFFFF));
  }
  CHECK(violation(reader) == "protocol_violation");
}

TEST_CASE("frame reader: stays failed after a violation") {
  FrameReader reader(10);
  reader.feed(wire::encode(json{{"id", 1}}) + raw_frame("[]") + wire::encode(json{{"id", 2}}));
  CHECK(field(next_frame(reader).head, "id") == 1);
  CHECK(violation(reader) == "protocol_violation");
  CHECK(violation(reader) == "protocol_violation");
}

TEST_CASE("frame reader: rejects a head that is not one JSON object") {
  FrameReader reader(10);
  SUBCASE("nothing") {
    reader.feed(raw_frame(""));
  }
  SUBCASE("an array") {
    reader.feed(raw_frame("[1]"));
  }
  SUBCASE("a number") {
    reader.feed(raw_frame("1"));
  }
  SUBCASE("null") {
    reader.feed(raw_frame("null"));
  }
  SUBCASE("half an object") {
    reader.feed(raw_frame(R"({"id":1)"));
  }
  SUBCASE("an object and more") {
    reader.feed(raw_frame("{}{}"));
  }
  SUBCASE("text that is not UTF-8") {
    reader.feed(raw_frame("{\"a\":\"\xff\"}"));
  }
  SUBCASE("a comment") {
    reader.feed(raw_frame("{/**/}"));
  }
  CHECK(violation(reader) == "protocol_violation");
}

TEST_CASE("frame reader: accepts a head of the maximum depth and no deeper") {
  FrameReader good(0);
  good.feed(raw_frame(nested(wire::k_max_head_depth)));
  CHECK(next_frame(good).head.is_object());

  FrameReader bad(0);
  bad.feed(raw_frame(nested(wire::k_max_head_depth + 1)));
  CHECK(violation(bad) == "protocol_violation");
}

TEST_CASE("frame reader: rejects a head of brackets without recursion") {
  FrameReader reader(0);
  SUBCASE("open ones") {
    reader.feed(raw_frame(std::string(wire::k_max_head_bytes, '[')));
  }
  SUBCASE("balanced ones") {
    constexpr std::size_t half = (wire::k_max_head_bytes - 6) / 2;
    reader.feed(raw_frame("{\"a\":" + std::string(half, '[') + std::string(half, ']') + "}"));
  }
  CHECK(violation(reader) == "protocol_violation");
}

TEST_CASE("parse_bounded: counts objects and arrays") {
  CHECK(wire::parse_bounded(R"({"a":[{"b":1}]})", 3));
  CHECK_FALSE(wire::parse_bounded(R"({"a":[{"b":1}]})", 2));
  CHECK(wire::parse_bounded(R"({"a":[],"b":[],"c":{}})", 2));
}
