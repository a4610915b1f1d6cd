#include <doctest/doctest.h>
#include <fcntl.h>
#include <re2/re2.h>
#include <unistd.h>

#include <array>
#include <random>
#include <string>

#include "unit/agent/files/search/searches.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("search: matching lines are ordered by path, with number and column") {
  const Tree tree;
  tree.put("b.txt", "needle\n");
  tree.put("a/z.txt", "one\n  needle here\n");
  tree.put("a.txt", "no newline at the end: needle");
  tree.put("empty", "");
  const SearchResult result = found(tree.fd(), request("needle"));
  CHECK(shown(result) == "a/z.txt:2:  needle here\na.txt:1:no newline at the end: needle\nb.txt:1:needle\n");
  CHECK(result.files[0].lines[0].column == 3);
  CHECK(result.matches == 3);
  CHECK(result.files_with_matches == 3);
  CHECK(result.files_searched == 4);
  CHECK(result.shown == 3);
  CHECK_FALSE(result.more);
}

TEST_CASE("search: a start that is a file is searched, even if hidden") {
  const Tree tree;
  tree.put(".hidden", "a\nneedle\n");
  const Fd file(::open(tree.path(".hidden").c_str(), O_RDONLY | O_CLOEXEC));
  const SearchResult result = found(file.get(), request("needle"));
  CHECK(shown(result) == ":2:needle\n");
  SearchRequest second = request("e");
  second.offset = 1;
  CHECK(found(file.get(), second).shown == 0);
}

TEST_CASE("search: patterns match within lines") {
  const std::string text = "one two\nthree\r\n\nfour(5)\nONE\n";
  const auto lines = [&](const std::string& pattern) { return grep_text(text, request(pattern)); };
  CHECK(lines("^three$") == "f:2:three\n");
  CHECK(lines("e$") == "f:2:three\n");
  CHECK(lines("^$") == "f:3:\n");
  CHECK(lines("two.three") == "");
  CHECK(lines("two\\s*three") == "");
  CHECK(lines("o[^x]*t") == "f:1:one two\n");
  CHECK(lines("(?s)two.*three") == "");
  CHECK(lines("\\Aone") == "f:1:one two\n");
  CHECK(lines("two\\z") == "f:1:one two\n");
  CHECK(lines("(?-m)two$") == "f:1:one two\n");
  CHECK(lines("two\\C*three") == "");
  CHECK(lines("(?i)one$") == "f:5:ONE\n");
  CHECK(lines("x*") == "f:1:one two\nf:2:three\nf:3:\nf:4:four(5)\nf:5:ONE\n");
  CHECK(lines("") == lines("x*"));
  CHECK(lines("one|ONE|nothing") == "f:1:one two\nf:5:ONE\n");
}

TEST_CASE("search: literal, case-insensitive and whole-word patterns") {
  SearchRequest one = request("four(5)");
  CHECK(grep_text("four(5)\n", one) == "");
  one.literal = true;
  CHECK(grep_text("four(5)\n", one) == "f:1:four(5)\n");
  one = request("Skin \xc3\xa4");
  one.ignore_case = true;
  CHECK(grep_text("sKIN \xc3\x84\n\xc5\xbf\xe2\x84\xaa"
                  "in \xc3\xa4\n",
                  one)
            .size() == 2 * 4 + 8 + 11);
  one = request("cat");
  one.whole_word = true;
  CHECK(grep_text("cat\nconcat\ncats\na cat.\ncat_1\n(cat)\nconcat cat\n", one) ==
        "f:1:cat\nf:4:a cat.\nf:6:(cat)\nf:7:concat cat\n");
  const Tree tree;
  tree.put("f", "concat cat\n");
  CHECK(found(tree.fd(), one).files[0].lines[0].column == 8);
}

TEST_CASE("search: invalid patterns and starts are rejected with the reason") {
  const Tree tree;
  for (const char* pattern : {"(", "[a", "a**", "(?=x)", "\\1", "a{1001}", "*", ".\xff", "\\", "x\ny"}) {
    const auto result = agent::search(tree.fd(), request(pattern));
    REQUIRE_MESSAGE(!result, pattern);
    CHECK(result.error().code == ErrorCode::bad_pattern);
  }
  CHECK(agent::search(tree.fd(), request("(")).error().message.find("missing )") != std::string::npos);
  CHECK(agent::search(tree.fd(), request("((a{100}){100}){100}")).error().code == ErrorCode::bad_pattern);
  SearchRequest bad_glob = request("a");
  bad_glob.include = {"{"};
  CHECK(agent::search(tree.fd(), bad_glob).error().code == ErrorCode::bad_glob);
  REQUIRE(::mkfifo(tree.path("fifo").c_str(), 0600) == 0);
  const Fd fifo(::open(tree.path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK(agent::search(fifo.get(), request("a")).error().code == ErrorCode::not_searchable);
}

TEST_CASE("search: patterns that backtrack elsewhere take linear time") {
  const std::string text = std::string(50'000, 'a') + "\n";
  CHECK(grep_text(text, request("(a*)*(a*)*(a|aa)+$x")) == "");
  CHECK(grep_text(text, request("(x+x+)+y")) == "");
  CHECK(grep_text(text, request("(a|b)*a(a|b){12}c")) == "");
}

TEST_CASE("search: globs and ignore rules select files, omissions are counted") {
  const Tree tree;
  tree.put(".gitignore", "*.log\n");
  tree.put("a.c", "x\n");
  tree.put("a.log", "x\n");
  tree.put(".hidden", "x\n");
  tree.put("src/b.h", "x\n");
  tree.put("src/b.c", "x\n");
  SearchRequest one = request("x");
  one.output = Output::files;
  SearchResult result = found(tree.fd(), one);
  CHECK(shown(result) == "a.c:0\nsrc/b.c:0\nsrc/b.h:0\n");
  CHECK(result.walked.ignored == 1);
  CHECK(result.walked.hidden == 2);
  one.include = {"*.{c,log}"};
  CHECK(grep(tree, one) == "a.c:0\nsrc/b.c:0\n");
  one.exclude = {"src"};
  CHECK(grep(tree, one) == "a.c:0\n");
  one.honour_ignore_files = false;
  CHECK(grep(tree, one) == "a.c:0\na.log:0\n");
  one.include = {};
  one.hidden = true;
  CHECK(grep(tree, one) == ".hidden:0\na.c:0\na.log:0\n");
}

TEST_CASE("search: each context line is shown once") {
  std::string numbers;
  for (int i = 1; i <= 20; ++i) {
    numbers += fmt::format("{}\n", i);
  }
  SearchRequest one = request("^(5|7|15)$");
  one.context = 2;
  CHECK(grep_text(numbers, one) ==
        "f-3-3\nf-4-4\nf:5:5\nf-6-6\nf:7:7\nf-8-8\nf-9-9\nf-13-13\nf-14-14\nf:15:15\nf-16-16\nf-17-17\n");
  one.offset = 1;
  one.max = 1;
  CHECK(grep_text(numbers, one) == "f-5-5\nf-6-6\nf:7:7\nf-8-8\nf-9-9\n");
  one = request("^(1|20)$");
  one.context = 3;
  CHECK(grep_text(numbers, one) == "f:1:1\nf-2-2\nf-3-3\nf-4-4\nf-17-17\nf-18-18\nf-19-19\nf:20:20\n");
}

TEST_CASE("search: the pages of every output kind add up to all results") {
  const Tree tree;
  for (int i = 0; i < 30; ++i) {
    std::string content;
    for (int line = 0; line < i; ++line) {
      content += line % 2 == 0 ? "hit\n" : "miss\n";
    }
    tree.put(fmt::format("d{}/f{}", i % 4, i), content);
  }
  for (const Output output : {Output::content, Output::files, Output::count}) {
    SearchRequest one = request("hit");
    one.output = output;
    one.max = 100'000;
    const SearchResult all = found(tree.fd(), one);
    CHECK_FALSE(all.more);
    std::string pages;
    std::string whole = shown(all);
    one.max = 7;
    for (bool more = true; more; one.offset += 7) {
      const SearchResult page = found(tree.fd(), one);
      CHECK(page.matches == all.matches);
      CHECK(page.files_with_matches == 29);
      more = page.more;
      CHECK((more ? page.shown == 7 : page.shown <= 7));
      pages += shown(page);
    }
    CHECK(pages == whole);
  }
  SearchRequest beyond = request("hit");
  beyond.offset = 1'000'000;
  CHECK(found(tree.fd(), beyond).shown == 0);
  CHECK_FALSE(found(tree.fd(), beyond).more);
}

TEST_CASE("search: a long line is cut around its match, and the cut is counted") {
  const Tree tree;
  tree.put("f", std::string(1000, 'a') + "needle" + std::string(2000, 'b') + "\n");
  tree.put("g", "needle" + std::string(1000, 'a') + "\n");
  tree.put("h", std::string(1000, 'a') + "needle\n");
  tree.put("u", std::string(999, 'x') + "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4needle\n");
  const SearchResult result = found(tree.fd(), request("needle"), 100);
  for (const agent::FoundFile& file : result.files) {
    const agent::FoundLine& line = file.lines[0];
    CHECK(line.text.find("needle") == line.column - 1 - line.cut_before);
    CHECK(line.text.size() <= 103);
    const std::size_t whole = std::filesystem::file_size(tree.path(file.path)) - 1;
    CHECK(line.cut_before + line.text.size() + line.cut_after == whole);
  }
}

TEST_CASE("search: with multi-line, a match may span lines") {
  SearchRequest one = request("two\\s+three");
  one.multi_line = true;
  const std::string text = "one\ntwo\nthree\nfour two  three\nend\n";
  CHECK(grep_text(text, one) == "f:2:two\nf:3:three\nf:4:four two  three\n");
  one.pattern = "two.three";
  CHECK(grep_text(text, one) == "");
  one.pattern = "(?s)one.*end";
  CHECK(grep_text(text, one) == "f:1:one\nf:2:two\nf:3:three\nf:4:four two  three\nf:5:end\n");
  one.pattern = "o\ntw";
  CHECK(grep_text(text, one) == "");
  one.pattern = "e\ntw";
  one.context = 1;
  one.literal = true;
  CHECK(grep_text(text, one) == "f:1:one\nf:2:two\nf-3-three\n");
}

TEST_CASE("search: random patterns give the result of a search line by line") {
  std::mt19937 random(11);
  const std::array<std::string, 12> patterns = {"ab",       "a+b", "^a",    "b$",     "a|bb",     "[ab]c",
                                                "\\bab\\b", "a.c", "a?b*c", "(ab)+c", "ab|ba|cc", "x*$"};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (std::size_t i = random() % 300; i > 0; --i) {
      text += "aabbc  \n"[random() % 8];
    }
    const std::string& pattern = patterns.at(random() % patterns.size());
    std::string expected;
    const re2::RE2 plain(pattern);
    int number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      ++number;
      if (re2::RE2::PartialMatch(line, plain)) {
        expected += fmt::format("f:{}:{}\n", number, line);
      }
      begin = end + 1;
    }
    SearchRequest one = request(pattern);
    one.max = 1000;
    CHECK_MESSAGE(grep_text(text, one) == expected, pattern);
  }
}
