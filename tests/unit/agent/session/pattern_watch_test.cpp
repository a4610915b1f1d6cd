#include "agent/session/pattern_watch.hpp"

#include <doctest/doctest.h>
#include <re2/re2.h>

#include <string>

#include "agent/record.hpp"
#include "agent/spool.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::LineSearch;
using agent::PatternWatch;

namespace {

constexpr std::size_t k_much = 1024 * 1024;

PatternWatch watch_for(const std::string& pattern, PatternWatch::Positions from = {}) {
  auto watch = PatternWatch::make(pattern, from);
  REQUIRE(watch);
  return std::move(*watch);
}

}  // namespace

TEST_CASE("pattern watch: the first matching line is found in pieces of any size") {
  const std::string stream = "one\ntwo\nready on port 80\nready again\n";
  const re2::RE2 pattern("^ready");
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    CAPTURE(piece);
    LineSearch search(pattern, 0);
    std::optional<std::string> found;
    for (std::size_t at = 0; at < stream.size() && !found; at += piece) {
      found = search.feed(std::string_view(stream).substr(at, piece));
    }
    REQUIRE(found);
    CHECK(std::string_view("ready on port 80").starts_with(*found));
    CHECK(search.line_start() == 8);
  }
}

TEST_CASE("pattern watch: a prompt without a newline is found") {
  const re2::RE2 pattern("Password: $");
  LineSearch search(pattern, 0);
  CHECK_FALSE(search.feed("Pass"));
  CHECK(search.feed("word: ") == "Password: ");
}

TEST_CASE("pattern watch: escape sequences do not hide a match") {
  const re2::RE2 pattern("^ready$");
  LineSearch search(pattern, 0);
  CHECK(search.feed("\x1b[32mrea\x1b[0mdy\r\n"));
}

TEST_CASE("pattern watch: of an endless line, a bounded end is kept and searched") {
  const re2::RE2 pattern("needle");
  LineSearch search(pattern, 0);
  const std::string hay(k_much, 'x');
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(search.feed(hay));
    CHECK(search.offset() == (static_cast<std::uint64_t>(i) + 1) * k_much);
    CHECK(search.offset() - search.line_start() <= 64 * 1024);
  }
  CHECK(search.feed("xxneedle"));
}

TEST_CASE("pattern watch: a gap in the stream ends the current line") {
  const re2::RE2 pattern("ab");
  LineSearch search(pattern, 10);
  CHECK_FALSE(search.feed("a"));
  search.skip_to(500);
  CHECK(search.offset() == 500);
  CHECK_FALSE(search.feed("b\n"));
  CHECK(search.line_start() == 502);
}

TEST_CASE("pattern watch: both streams are searched from the given positions") {
  const test::TemporaryDirectory files;
  agent::SpoolWriter out(files.fd(), agent::out_name("proc_1_a"), {});
  agent::SpoolWriter err(files.fd(), agent::err_name("proc_1_a"), {});
  out.append("found early\n");
  auto watch = watch_for("found", {12, 0});
  CHECK(*watch.advance(files.fd(), "proc_1_a"));
  CHECK_FALSE(watch.match());
  out.append("nothing here\n");
  err.append("found late\n");
  CHECK(*watch.advance(files.fd(), "proc_1_a"));
  REQUIRE(watch.match());
  CHECK(watch.match()->is_err);
  CHECK(watch.match()->line == "found late");
}

TEST_CASE("pattern watch: long output takes several turns and is searched completely") {
  const test::TemporaryDirectory files;
  agent::SpoolWriter out(files.fd(), agent::out_name("proc_1_a"), {});
  std::string line(99, 'x');
  line += '\n';
  for (std::size_t written = 0; written < 5 * k_much; written += line.size()) {
    out.append(line);
  }
  out.append("the end\n");
  auto watch = watch_for("the end");
  int turns = 1;
  while (!*watch.advance(files.fd(), "proc_1_a")) {
    ++turns;
  }
  CHECK(turns == 6);
  REQUIRE(watch.match());
  CHECK(watch.match()->line == "the end");
}

TEST_CASE("pattern watch: an invalid expression is rejected with the reason") {
  const auto watch = PatternWatch::make("(unclosed", {});
  REQUIRE_FALSE(watch);
  CHECK(watch.error().code == ErrorCode::bad_pattern);
  CHECK(watch.error().message.find("missing )") != std::string::npos);
}
