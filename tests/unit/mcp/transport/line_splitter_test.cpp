#include "mcp/transport/line_splitter.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using dockbridge::mcp::LineSplitter;

namespace {

/// The reports of a splitter, in order; "TOO LONG" for a line over the limit.
class Splitting {
 public:
  explicit Splitting(std::size_t max_line) : m_splitter(max_line) {}

  std::vector<std::string> feed(std::string_view bytes) {
    std::vector<std::string> events;
    m_splitter.feed(
        bytes, [&](std::string_view line) { events.emplace_back(line); }, [&] { events.emplace_back("TOO LONG"); });
    return events;
  }

 private:
  LineSplitter m_splitter;
};

using Events = std::vector<std::string>;

}  // namespace

TEST_CASE("lines: each line is reported once, at its newline") {
  Splitting lines(100);
  CHECK(lines.feed("one").empty());
  CHECK(lines.feed("\n") == Events{"one"});
  CHECK(lines.feed("two\nthree\nfo") == Events{"two", "three"});
  CHECK(lines.feed("ur\n") == Events{"four"});
}

TEST_CASE("lines: the size of the pieces does not matter") {
  const std::string stream = "{\"a\":1}\n\n  \r\nwith spaces \n\xff\n" + std::string(20, 'x') + "\nlast\n";
  Splitting whole(10);
  const Events expected = whole.feed(stream);
  CHECK(expected == Events{"{\"a\":1}", "TOO LONG", "\xff", "TOO LONG", "last"});
  for (std::size_t piece = 1; piece < stream.size(); ++piece) {
    CAPTURE(piece);
    Splitting lines(10);
    Events events;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      for (std::string& event : lines.feed(std::string_view(stream).substr(at, piece))) {
        events.push_back(std::move(event));
      }
    }
    CHECK(events == expected);
  }
}

TEST_CASE("lines: blank lines are dropped") {
  Splitting lines(10);
  CHECK(lines.feed("\n\r\n  \t\n").empty());
  CHECK(lines.feed("a\n\n\nb\n") == Events{"a", "b"});
}

TEST_CASE("lines: a line at the limit passes, one byte more is too long") {
  Splitting lines(5);
  CHECK(lines.feed("12345\n") == Events{"12345"});
  CHECK(lines.feed("123456\n") == Events{"TOO LONG"});
  CHECK(lines.feed("12345\n") == Events{"12345"});
}

TEST_CASE("lines: a line over the limit is reported at once, and skipped to its end") {
  Splitting lines(5);
  CHECK(lines.feed("123456") == Events{"TOO LONG"});
  for (int i = 0; i < 100; ++i) {
    CHECK(lines.feed(std::string(1000, 'x')).empty());
  }
  CHECK(lines.feed("the end\nnext\n") == Events{"next"});
}

TEST_CASE("lines: NUL is an ordinary byte") {
  Splitting lines(5);
  CHECK(lines.feed(std::string_view("a\0b\n", 4)) == Events{std::string("a\0b", 3)});
}
