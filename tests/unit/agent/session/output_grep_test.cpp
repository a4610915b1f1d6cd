#include "agent/session/output_grep.hpp"

#include <doctest/doctest.h>
#include <re2/re2.h>

#include <string>

#include "agent/record.hpp"
#include "agent/spool.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::GrepLines;
using agent::OutputGrep;

namespace {

std::string numbers(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i) {
    text += std::to_string(i) + "\n";
  }
  return text;
}

std::string grep(const std::string& stream, const std::string& pattern, std::size_t context = 0,
                 std::size_t most = 100) {
  const re2::RE2 compiled(pattern);
  GrepLines lines(compiled, context, most);
  lines.feed(stream);
  lines.finish();
  return lines.text();
}

}  // namespace

TEST_CASE("output grep: matching lines have their numbers") {
  CHECK(grep("one\ntwo\nthree\n", "t") == "2:two\n3:three\n");
  CHECK(grep("one\n", "x") == "");
  CHECK(grep("no newline", "new") == "1:no newline\n");
}

TEST_CASE("output grep: context lines are shown once, and groups are separated") {
  CHECK(grep(numbers(1, 20), "^5$|^7$|^15$", 2) ==
        "3-3\n4-4\n5:5\n6-6\n7:7\n8-8\n9-9\n--\n13-13\n14-14\n15:15\n16-16\n17-17\n");
  CHECK(grep(numbers(1, 3), "1", 5) == "1:1\n2-2\n3-3\n");
}

TEST_CASE("output grep: all matches are counted, and the first are shown") {
  const re2::RE2 pattern(".");
  GrepLines lines(pattern, 0, 3);
  lines.feed(numbers(1, 1000));
  CHECK(lines.matches() == 1000);
  CHECK(lines.shown() == 3);
  CHECK(lines.text() == "1:1\n2:2\n3:3\n");
}

TEST_CASE("output grep: colours do not hide a match, and a long line is cut") {
  CHECK(grep("\x1b[31merr\x1b[0mor\n", "^error$") == "1:error\n");
  const std::string shown = grep(std::string(1'000'000, 'x') + "\n", "x");
  CHECK(shown.size() < 600);
  CHECK(shown.find("…") != std::string::npos);
}

TEST_CASE("output grep: long output takes several turns, and a gap is reported") {
  const test::TemporaryDirectory files;
  agent::SpoolWriter out(files.fd(), agent::out_name("proc_1_a"), {100, 2'000'000});
  agent::SpoolWriter err(files.fd(), agent::err_name("proc_1_a"), {});
  out.append("first needle\n" + std::string(5'000'000, 'x') + "\n" + numbers(1, 200'000) + "last needle\n");
  err.append("a needle too\n");
  auto grep = OutputGrep::make({"NEEDLE", true, 0, 10});
  REQUIRE(grep);
  int turns = 1;
  while (!*grep->advance(files.fd(), "proc_1_a")) {
    ++turns;
  }
  CHECK(turns > 1);
  CHECK(grep->out().matches() == 2);
  CHECK(grep->out().text().starts_with("1:first needle\n["));
  CHECK(grep->out().text().find("are not stored") != std::string::npos);
  CHECK(grep->out().text().ends_with(":last needle\n"));
  CHECK(grep->err().text() == "1:a needle too\n");
}
