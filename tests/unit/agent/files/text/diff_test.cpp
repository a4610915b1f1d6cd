#include "agent/files/text/diff.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "support/repeated.hpp"

using namespace dockbridge;
using agent::Diff;
using agent::DiffLimits;
using agent::unified_diff;
using test::repeated;

namespace {

std::string numbered_lines(std::size_t count, const std::string& word = "line") {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) {
    text += word + " " + std::to_string(i) + "\n";
  }
  return text;
}

std::string replaced(std::string text, const std::string& old_text, const std::string& new_text) {
  return text.replace(text.find(old_text), old_text.size(), new_text);
}

bool holds(const Diff& diff, const std::string& part) {
  return diff.text.find(part) != std::string::npos;
}

/// A directory in which patch(1) runs.
class PatchRoom {
 public:
  PatchRoom() { REQUIRE(::mkdtemp(m_folder.data()) != nullptr); }
  ~PatchRoom() { std::filesystem::remove_all(m_folder); }
  PatchRoom(const PatchRoom&) = delete;
  PatchRoom& operator=(const PatchRoom&) = delete;

  [[nodiscard]] std::string patched(const std::string& before, const std::string& diff) const {
    std::ofstream(m_folder + "/file", std::ios::binary) << before;
    std::ofstream(m_folder + "/diff", std::ios::binary) << diff;
    const std::string command = "cd '" + m_folder + "' && patch --binary --fuzz=0 --silent -p1 <diff >log 2>&1";
    REQUIRE(std::system(command.c_str()) == 0);  // NOLINT: a test
    std::ifstream file(m_folder + "/file", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string m_folder = std::filesystem::temp_directory_path() / "dockbridge-diff-XXXXXX";
};

/// Applies a diff according to its format, and checks every line of it.
std::string applied(const std::string& before, const Diff& diff) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < before.size();) {
    const std::size_t end = std::min(before.find('\n', at), before.size() - 1) + 1;
    lines.push_back(before.substr(at, end - at));
    at = end;
  }
  std::string after;
  std::size_t next = 0;
  std::size_t added = 0;
  std::size_t removed = 0;
  const std::size_t hunks = diff.text.find('\n', diff.text.find('\n') + 1) + 1;  // after the two names
  for (std::size_t at = hunks; at < diff.text.size();) {
    const std::size_t end = diff.text.find('\n', at);
    REQUIRE(end != std::string::npos);
    std::string line = diff.text.substr(at, end + 1 - at);
    at = end + 1;
    if (line.starts_with("@@ -")) {
      const bool inserts = line.find(",0 +") != std::string::npos;
      const std::size_t start = std::stoul(line.substr(4)) - (inserts ? 0 : 1);
      REQUIRE(start >= next);
      while (next < start) {
        after += lines.at(next++);
      }
      continue;
    }
    if (diff.text.compare(at, 2, "\\ ") == 0) {
      line.pop_back();
      at = diff.text.find('\n', at) + 1;
    }
    const char mark = line.front();
    line.erase(0, 1);
    if (mark != '+') {
      REQUIRE(lines.at(next++) == line);
    }
    if (mark != '-') {
      after += line;
    }
    added += mark == '+' ? 1 : 0;
    removed += mark == '-' ? 1 : 0;
  }
  while (next < lines.size()) {
    after += lines.at(next++);
  }
  CHECK(added == diff.added);
  CHECK(removed == diff.removed);
  return after;
}

/// Text of few different lines, so lines repeat.
std::string random_text(std::mt19937& random) {
  const std::vector<std::string> lines = {"a\n",      "b\n",   "c\n",  "\n",   "  indented\n",
                                          "ende\r\n", "-- \n", "++\n", "@@ \n"};
  std::string text;
  for (std::size_t length = random() % 40; length > 0; --length) {
    text += lines[random() % lines.size()];
  }
  return random() % 3 == 0 ? text + "no end" : text;
}

/// Removes, adds and repeats some lines.
std::string randomly_edited(const std::string& text, std::mt19937& random) {
  std::string out;
  const unsigned seldom = 2 + random() % 20;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    at = end;
    switch (random() % seldom) {
      case 0:
        break;
      case 1:
        out += line.ends_with('\n') ? "new\n" + line : line;
        break;
      default:
        out += line;
    }
  }
  return random() % 5 == 0 && out.ends_with('\n') ? out.substr(0, out.size() - 1) : out;
}

}  // namespace

TEST_CASE("diff: has the unified format") {
  const std::string before = numbered_lines(12);
  const Diff diff = unified_diff(before, replaced(before, "line 6\n", "line six\nand more\n"), "/app/src/x.txt");
  CHECK(diff.text ==
        "--- a/app/src/x.txt\n"
        "+++ b/app/src/x.txt\n"
        "@@ -3,7 +3,8 @@\n"
        " line 3\n line 4\n line 5\n"
        "-line 6\n"
        "+line six\n+and more\n"
        " line 7\n line 8\n line 9\n");
  CHECK(diff.added == 2);
  CHECK(diff.removed == 1);
  CHECK(!diff.cut);
}

TEST_CASE("diff: equal texts have none") {
  CHECK(unified_diff("", "", "x").text.empty());
  CHECK(unified_diff("same\n", "same\n", "x").text.empty());
}

TEST_CASE("diff: near changes share a hunk, distant ones do not") {
  const std::string before = numbered_lines(40);
  const auto changed = [&](const std::string& second) {
    return unified_diff(before, replaced(replaced(before, "line 10\n", "ten\n"), second + "\n", "other\n"), "x").text;
  };
  CHECK(changed("line 17").find("\n@@ -7,14 +7,14 @@\n") != std::string::npos);
  CHECK(changed("line 18").find("\n@@ -7,7 +7,7 @@\n") != std::string::npos);
  CHECK(changed("line 18").find("\n@@ -15,7 +15,7 @@\n") != std::string::npos);
}

TEST_CASE("diff: marks empty files and missing line ends") {
  CHECK(unified_diff("", "one\n", "x").text == "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+one\n");
  CHECK(unified_diff("one\n", "", "x").text == "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-one\n");
  CHECK(unified_diff("one", "one\n", "x").text ==
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+one\n");
  CHECK(unified_diff("a\nend", "b\nend", "x").text ==
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n end\n\\ No newline at end of file\n");
}

TEST_CASE("diff: quotes names that would break the header") {
  CHECK(unified_diff("", "a\n", "/a b").text.starts_with("--- a/a b\t\n+++ b/a b\t\n"));
  CHECK(unified_diff("", "a\n", "a\n\"b").text.starts_with("--- \"a/a\\012\\\"b\"\n"));
}

TEST_CASE("diff: applying it reproduces random edits") {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const std::string before = random_text(random);
    const std::string after = random() % 4 == 0 ? random_text(random) : randomly_edited(before, random);
    const Diff diff = unified_diff(before, after, "file", {random() % 4, 1024 * 1024});
    CAPTURE(before);
    CAPTURE(after);
    CAPTURE(diff.text);
    REQUIRE(!diff.cut);
    REQUIRE(applied(before, diff) == after);
  }
}

TEST_CASE("diff: patch(1) applies it") {
  const PatchRoom room;
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const std::string before = random_text(random) + "x\n";
    const std::string after = randomly_edited(before, random) + "y\n";
    const Diff diff = unified_diff(before, after, "/file");
    CAPTURE(diff.text);
    REQUIRE(!diff.cut);
    REQUIRE(room.patched(before, diff.text) == after);
  }
}

TEST_CASE("diff: shows the fewest possible lines as changed") {
  CHECK(unified_diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", "x").added == 2);
  const std::string before = repeated("{\n}\n", 50);
  const Diff diff = unified_diff(before, "new\n" + before + "new\n", "x");
  CHECK(diff.added == 2);
  CHECK(diff.removed == 0);
}

TEST_CASE("diff: distant changes in a large file give a small diff") {
  const std::string before = numbered_lines(300'000);
  const std::string after = replaced(replaced(before, "line 5\n", "five\n"), "line 299990\n", "");
  const Diff diff = unified_diff(before, after, "x");
  CHECK(diff.added == 1);
  CHECK(diff.removed == 2);
  CHECK(applied(before, diff) == after);
}

TEST_CASE("diff: too many changes are split at lines that occur once") {
  std::string before;
  std::string after;
  for (int i = 0; i < 5000; ++i) {
    before += "kept " + std::to_string(i) + "\nold\n";
    after += "kept " + std::to_string(i) + "\nnew\n";
  }
  const Diff diff = unified_diff(before, after, "x", {3, 10 * 1024 * 1024});
  CHECK(diff.added == 5000);
  CHECK(diff.removed == 5000);
  CHECK(applied(before, diff) == after);
}

TEST_CASE("diff: unrelated or reordered texts take bounded time") {
  const std::string before = numbered_lines(100'000, "before");
  const std::string after = numbered_lines(100'000, "after");
  const Diff replaced_whole = unified_diff(before, after, "x");
  CHECK(replaced_whole.added == 100'000);
  CHECK(replaced_whole.removed == 100'000);
  CHECK(replaced_whole.cut);

  std::mt19937 random(3);
  std::string one;
  std::string other;
  for (int i = 0; i < 100'000; ++i) {
    one += random() % 2 == 0 ? "a\n" : "b\n";
    other += random() % 2 == 0 ? "a\n" : "b\n";
  }
  const Diff shuffled = unified_diff(one, other, "x", {3, 10 * 1024 * 1024});
  CHECK(applied(one, shuffled) == other);
}

TEST_CASE("diff: lines beyond the comparison limit are counted") {
  const std::string before = repeated("x\n", 1'500'000);
  const std::string after = repeated("y\n", 1'200'000);
  const Diff diff = unified_diff("same\n" + before + "end\n", "same\n" + after + "end\n", "x");
  CHECK(diff.removed == 1'500'000);
  CHECK(diff.added == 1'200'000);
  CHECK(diff.cut);
  CHECK(diff.text.size() < 17 * 1024);
  CHECK(holds(diff, "\n same\n-x\n"));
  CHECK(holds(diff, " more lines removed]\n"));
  CHECK(holds(diff, " more lines added]\n"));
}

TEST_CASE("diff: a cut diff shows both sides and states the omissions") {
  const Diff one_hunk = unified_diff(numbered_lines(1000, "old"), numbered_lines(900, "new"), "x", {3, 2000});
  CHECK(one_hunk.cut);
  CHECK(one_hunk.text.size() < 2200);
  CHECK(holds(one_hunk, "\n-old 50\n"));
  CHECK(holds(one_hunk, "\n+new 50\n"));
  CHECK(one_hunk.removed == 1000);

  std::string after;
  for (int i = 1; i <= 1000; ++i) {
    after += i % 20 == 0 ? "changed\n" : "line " + std::to_string(i) + "\n";
  }
  const Diff hunks = unified_diff(numbered_lines(1000), after, "x", {3, 2000});
  CHECK(hunks.cut);
  CHECK(hunks.text.size() < 2200);
  const std::size_t note = hunks.text.find(" more changes further on, with ");
  REQUIRE(note != std::string::npos);
  const std::size_t left_out = std::stoul(hunks.text.substr(hunks.text.rfind('[') + 1));
  CHECK(hunks.text.substr(note).starts_with(" more changes further on, with " + std::to_string(left_out) +
                                            " lines added and " + std::to_string(left_out) + " removed]\n"));
  CHECK(hunks.added == 50);
}

TEST_CASE("diff: a hunk of many changes is cut, and the rest is counted") {
  std::string before;
  std::string after;
  for (int i = 0; i < 300; ++i) {
    before += "old text " + std::to_string(i) + "\nkept " + std::to_string(i) + "\n";
    after += "new text " + std::to_string(i) + "\nkept " + std::to_string(i) + "\n";
  }
  const Diff diff = unified_diff(before, after, "x", {3, 2000});
  CHECK(diff.cut);
  CHECK(diff.text.size() < 2200);
  CHECK(diff.added == 300);
  CHECK(holds(diff, " more changes further on, with "));
  const Diff wide =
      unified_diff(repeated(std::string(1500, 'a') + "\n", 30), repeated(std::string(1500, 'b') + "\n", 30), "x");
  CHECK(wide.text.size() < 10'500);
}

TEST_CASE("diff: long lines are cut around their first difference") {
  const Diff at_start = unified_diff("x\n", std::string(5000, 'y') + "\n", "x");
  CHECK(at_start.cut);
  CHECK(holds(at_start, "y…[4000 more bytes]\n"));

  const std::string line = repeated("ä", 3000);
  const Diff inside = unified_diff(line + "old" + line + "\n", line + "new" + line + "\n", "x");
  CHECK(inside.cut);
  CHECK(holds(inside, "-[5900 bytes]…"));
  CHECK(holds(inside, "äoldä"));
  CHECK(holds(inside, "änewä"));
}

TEST_CASE("diff: one changed byte is one changed line at any position") {
  std::string before;
  for (int i = 0; i < 200; ++i) {
    before += fmt::format("line {:>26}\n", i);  // 32 bytes
  }
  for (std::size_t at = 0; at < before.size(); ++at) {
    if (before[at] == '\n') {
      continue;
    }
    CAPTURE(at);
    std::string after = before;
    after[at] = '#';
    const auto diff = unified_diff(before, after, "/file");
    REQUIRE(diff.added == 1);
    REQUIRE(diff.removed == 1);
    const std::size_t line = at / 32;
    REQUIRE(diff.text.find("\n-" + before.substr(line * 32, 32) + "+" + after.substr(line * 32, 32)) !=
            std::string::npos);
    REQUIRE(diff.text.find(fmt::format("@@ -{},", line < 3 ? 1 : line - 2)) != std::string::npos);
  }
}
