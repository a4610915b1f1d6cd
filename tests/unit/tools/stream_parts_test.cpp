#include "tools/stream_parts.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using tools::interleaved_text;
using tools::StreamPart;
using wire::WriteOrder;

namespace {

std::string as_it_is(std::string_view bytes) {
  return std::string(bytes);
}

/// Streams that are shown whole.
std::string shown(const std::string& out, const std::string& err, const WriteOrder& order) {
  return interleaved_text({{0, out}}, {{0, err}}, order, as_it_is);
}

}  // namespace

TEST_CASE("stream parts: stdout alone has no mark, stderr alone has one") {
  CHECK(shown("a\nb\n", "", {}) == "a\nb\n");
  CHECK(shown("", "a\nb\n", {}) == "[stderr]\na\nb\n");
  CHECK(shown("", "a\nb\n", {{0, 2}, {0, 4}}) == "[stderr]\na\nb\n");
  CHECK(shown("", "", {}).empty());
}

TEST_CASE("stream parts: a mark precedes each change of the stream") {
  CHECK(shown("a\nc\n", "b\n", {{2, 2}}) == "a\n[stderr]\nb\n[stdout]\nc\n");
  CHECK(shown("a\n", "b\nc\n", {{0, 2}, {2, 4}}) == "[stderr]\nb\n[stdout]\na\n[stderr]\nc\n");
  CHECK(shown("1\n2\n3\n", "x\ny\n", {{2, 2}, {4, 4}}) == "1\n[stderr]\nx\n[stdout]\n2\n[stderr]\ny\n[stdout]\n3\n");
}

TEST_CASE("stream parts: where the order is unknown, stdout goes first") {
  CHECK(shown("a\nc\n", "b\nd\n", {}) == "a\nc\n[stderr]\nb\nd\n");
  // known for the first two lines only
  CHECK(shown("a\nc\n", "b\nd\n", {{2, 2}}) == "a\n[stderr]\nb\n[stdout]\nc\n[stderr]\nd\n");
}

TEST_CASE("stream parts: a line is completed before the stream changes") {
  CHECK(shown("compiling... done\nok\n", "warning\n", {{12, 8}}) ==
        "compiling... done\n[stderr]\nwarning\n[stdout]\nok\n");
  CHECK(shown("out\n", "Password: ", {{0, 10}}) == "[stderr]\nPassword: \n[stdout]\nout\n");
  CHECK(shown("no end", "err\n", {{6, 4}}) == "no end\n[stderr]\nerr\n");
  // dots between lines of stderr are one line
  CHECK(shown("...\n", "x\ny\n", {{1, 2}, {2, 4}}) == "...\n[stderr]\nx\ny\n");
}

TEST_CASE("stream parts: marks beyond the shown part have no effect") {
  CHECK(shown("a\n", "b\n", {{100, 200}, {300, 400}}) == "a\n[stderr]\nb\n");
  CHECK(interleaved_text({{50, "c\n"}}, {{70, "d\n"}}, {{2, 2}, {50, 72}}, as_it_is) == "[stderr]\nd\n[stdout]\nc\n");
}

TEST_CASE("stream parts: remarks stay with their stream") {
  const std::vector<StreamPart> out = {{0, "head\n"}, {100, "tail\n", "[95 bytes left out]"}};
  CHECK(text_of(out, as_it_is) == "head\n[95 bytes left out]\ntail\n");
  CHECK(interleaved_text(out, {{0, "oops\n"}}, {{5, 5}}, as_it_is) ==
        "head\n[stderr]\noops\n[stdout]\n[95 bytes left out]\ntail\n");
  CHECK(interleaved_text(out, {{0, "oops\n"}}, {{103, 5}}, as_it_is) ==
        "head\n[95 bytes left out]\ntail\n[stderr]\noops\n");
  CHECK(interleaved_text({{0, "x"}, {1, "", "[more]"}}, {{0, "e\n"}}, {{0, 2}}, as_it_is) ==
        "[stderr]\ne\n[stdout]\nx\n[more]\n");
}

TEST_CASE("stream parts: a character between two runs is rendered whole") {
  const auto checked = [](std::string_view bytes) {
    CHECK(bytes.find("\xE2\x82") == bytes.find("€"));
    return std::string(bytes);
  };
  CHECK(interleaved_text({{0, "€€\n"}}, {{0, "e\n"}}, {{1, 1}, {2, 2}}, checked) == "€€\n[stderr]\ne\n");
}
