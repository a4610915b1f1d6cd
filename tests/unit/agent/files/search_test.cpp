#include "agent/files/search.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "agent/files/text_reader.hpp"
#include "unit/agent/files/tree.hpp"

using namespace dockbridge;
using agent::SearchRequest;
using agent::SearchResult;
using test::Tree;
using Output = SearchRequest::Output;

namespace {

SearchRequest request(const std::string& pattern) {
  SearchRequest one;
  one.pattern = pattern;
  return one;
}

SearchResult found(int fd, const SearchRequest& one) {
  auto result = agent::search(fd, one);
  REQUIRE_MESSAGE(result, one.pattern);
  return std::move(*result);
}

/// "path:number:text" of matches and "path-number-text" of context, a line each; "path:count" without lines.
std::string shown(const SearchResult& result) {
  std::string text;
  for (const agent::FoundFile& file : result.files) {
    if (file.lines.empty()) {
      text += fmt::format("{}:{}\n", file.path, file.matches);
    }
    for (const agent::FoundLine& line : file.lines) {
      const char mark = line.matches ? ':' : '-';
      text += fmt::format("{}{}{}{}{}\n", file.path, mark, line.number, mark, line.text);
    }
  }
  return text;
}

std::string grep(const Tree& tree, const SearchRequest& one) {
  return shown(found(tree.fd(), one));
}

std::string grep_text(const std::string& content, const SearchRequest& one) {
  const Tree tree;
  tree.put("f", content);
  return grep(tree, one);
}

/// Runs in a process of its own, whose exit status tells what became of it, and returns that process's peak memory.
std::size_t peak_kib_of(const std::function<bool()>& act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::_exit(act() ? 0 : 1);
  }
  int status = 0;
  rusage usage{};
  REQUIRE(::wait4(child, &status, 0, &usage) == child);
  CHECK(status == 0);
  return static_cast<std::size_t>(usage.ru_maxrss);
}

}  // namespace

TEST_CASE("matching lines come in the order of their paths, with number and column") {
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

TEST_CASE("a start that is a file is searched, however it is named") {
  const Tree tree;
  tree.put(".hidden", "a\nneedle\n");
  const Fd file(::open(tree.path(".hidden").c_str(), O_RDONLY | O_CLOEXEC));
  const SearchResult result = found(file.get(), request("needle"));
  CHECK(shown(result) == ":2:needle\n");
  SearchRequest second = request("e");
  second.offset = 1;
  CHECK(found(file.get(), second).shown == 0);
}

TEST_CASE("lines are what a pattern sees") {
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

TEST_CASE("a text is searched as it is, in any case, as a whole word") {
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

TEST_CASE("what cannot be searched for is refused with the reason and a way on") {
  const Tree tree;
  for (const char* pattern : {"(", "[a", "a**", "(?=x)", "\\1", "a{1001}", "*", ".\xff", "\\", "x\ny"}) {
    const auto result = agent::search(tree.fd(), request(pattern));
    REQUIRE_MESSAGE(!result, pattern);
    CHECK(result.error().code == "bad_pattern");
    CHECK(result.error().next_step != "");
  }
  CHECK(agent::search(tree.fd(), request("(")).error().message.find("missing )") != std::string::npos);
  CHECK(agent::search(tree.fd(), request("((a{100}){100}){100}")).error().code == "bad_pattern");
  SearchRequest bad_glob = request("a");
  bad_glob.include = {"{"};
  CHECK(agent::search(tree.fd(), bad_glob).error().code == "bad_glob");
  REQUIRE(::mkfifo(tree.path("fifo").c_str(), 0600) == 0);
  const Fd fifo(::open(tree.path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK(agent::search(fifo.get(), request("a")).error().code == "not_searchable");
}

TEST_CASE("an expression that would take others for ever takes its time in proportion") {
  const std::string text = std::string(50'000, 'a') + "\n";
  CHECK(grep_text(text, request("(a*)*(a*)*(a|aa)+$x")) == "");
  CHECK(grep_text(text, request("(x+x+)+y")) == "");
  CHECK(grep_text(text, request("(a|b)*a(a|b){12}c")) == "");
}

TEST_CASE("globs, rules and hidden names choose the files, and what is left out is counted") {
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
  CHECK(result.ignored_skipped == 1);
  CHECK(result.hidden_skipped == 2);
  one.include = {"*.{c,log}"};
  CHECK(grep(tree, one) == "a.c:0\nsrc/b.c:0\n");
  one.exclude = {"src"};
  CHECK(grep(tree, one) == "a.c:0\n");
  one.honour_ignore = false;
  CHECK(grep(tree, one) == "a.c:0\na.log:0\n");
  one.include = {};
  one.hidden = true;
  CHECK(grep(tree, one) == ".hidden:0\na.c:0\na.log:0\n");
}

TEST_CASE("context is shown once, around what is shown") {
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

TEST_CASE("pages together are all that was found, in every kind of output") {
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

TEST_CASE("a long line is cut around its match, and what is cut is counted") {
  SearchRequest one = request("needle");
  one.max_line_bytes = 100;
  const Tree tree;
  tree.put("f", std::string(1000, 'a') + "needle" + std::string(2000, 'b') + "\n");
  tree.put("g", "needle" + std::string(1000, 'a') + "\n");
  tree.put("h", std::string(1000, 'a') + "needle\n");
  tree.put("u", std::string(999, 'x') + "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4needle\n");
  const SearchResult result = found(tree.fd(), one);
  for (const agent::FoundFile& file : result.files) {
    const agent::FoundLine& line = file.lines[0];
    CHECK(line.text.find("needle") == line.column - 1 - line.cut_before);
    CHECK(line.text.size() <= 103);
    const std::size_t whole = std::filesystem::file_size(tree.path(file.path)) - 1;
    CHECK(line.cut_before + line.text.size() + line.cut_after == whole);
  }
}

TEST_CASE("files with a NUL byte are skipped, wherever it is") {
  const Tree tree;
  tree.put("early", std::string("needle\n\0", 8));
  tree.put("late", "needle\n" + std::string(500'000, '\n') + std::string(1, '\0'));
  tree.put("text", "needle\n");
  const SearchResult result = found(tree.fd(), request("needle"));
  CHECK(shown(result) == "text:1:needle\n");
  CHECK(result.binary_skipped == 2);
  CHECK(result.files_searched == 1);
}

TEST_CASE("UTF-16 with its mark is searched as text, and a UTF-8 mark is no part of the first line") {
  const Tree tree;
  std::string little = "\xff\xfe";
  std::string big = "\xfe\xff";
  for (const char c : std::string("one\nn\xe4"
                                  "edle\n")) {
    little += std::string(1, c) + '\0';
    big += '\0' + std::string(1, c);
  }
  little += std::string("\x3d\xd8\x00\xde", 4);
  tree.put("big", big);
  tree.put("little", little);
  tree.put(
      "long", little.substr(0, 2) + [&] {
        std::string many;
        for (int i = 0; i < 100'000; ++i) {
          many += little.substr(2, 2 * 11);
        }
        return many;
      }());
  tree.put("utf8",
           "\xef\xbb\xbfn\xc3\xa4"
           "edle\n");
  const SearchResult result = found(tree.fd(), request("^n\xc3\xa4"
                                                       "edle$"));
  CHECK(result.matches == 100'003);
  CHECK(
      shown(result).starts_with("big:2:n\xc3\xa4"
                                "edle\nlittle:2:n\xc3\xa4"
                                "edle\nlong:2:"));
  CHECK(found(tree.fd(), request("^\xf0\x9f\x98\x80$")).matches == 1);
}

TEST_CASE("what is no plain file is never opened, and links are not followed") {
  const Tree tree;
  tree.put("outside/a", "needle\n");
  tree.make_directory("in");
  REQUIRE(::mkfifo(tree.path("in/fifo").c_str(), 0600) == 0);
  tree.link("/dev/zero", "in/zero");
  tree.link("../outside/a", "in/a");
  tree.link("../outside", "in/directory");
  if (::geteuid() == 0) {
    REQUIRE(::mknod(tree.path("in/device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0);
  }
  const Fd start(::open(tree.path("in").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const SearchResult result = found(start.get(), request("."));
  CHECK(result.files_searched == 0);
  CHECK(result.unreadable == 0);
}

TEST_CASE("files that may not be read are counted and named") {
  const Tree tree;
  tree.put("closed", "x\n");
  tree.put("open", "x\n");
  REQUIRE(::chmod(tree.path("closed").c_str(), 0) == 0);
  REQUIRE(::chmod(tree.path("").c_str(), 0755) == 0);
  peak_kib_of([&] {
    // Root may read everything.
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {
      return false;
    }
    const auto result = agent::search(tree.fd(), request("x"));
    return result && result->unreadable == 1 && result->matches == 1 &&
           result->unreadable_paths == std::vector<std::string>{"closed: Permission denied"};
  });
}

TEST_CASE("a match is found wherever the blocks of a large file end") {
  std::mt19937 random(3);
  std::string text;
  std::size_t lines = 0;
  std::size_t hits = 0;
  std::string last;
  while (text.size() < 3'000'000) {
    const bool hit = random() % 50 == 0;
    ++lines;
    hits += hit ? 1 : 0;
    if (hit) {
      last = fmt::format("{}", lines);
    }
    text += std::string(random() % 400, '.') +
            (hit ? "nee"
                   "dle42"
                 : "needle") +
            std::string(random() % 400, ',') + "\n";
  }
  const Tree tree;
  tree.put("f", text);
  for (const char* pattern : {"needle42", "ne+dle\\d+", "[n][e]+dle[0-9]"}) {
    SearchRequest one = request(pattern);
    one.max = hits;
    one.max_line_bytes = 10;
    const SearchResult result = found(tree.fd(), one);
    CHECK(result.matches == hits);
    REQUIRE(result.shown == hits);
    CHECK(std::to_string(result.files[0].lines.back().number) == last);
  }
}

TEST_CASE("a line beyond the bound is searched in pieces, and that is said") {
  constexpr std::size_t k_bound = agent::TextReader::k_longest_line;
  const std::string longest(k_bound - 3, 'a');  // the match lies across the first piece's end
  const Tree tree;
  tree.put("f", "first\n" + longest + "needle" + std::string(3 * k_bound, 'b') + "\nlast needle\n");
  SearchRequest one = request("needle");
  one.max_line_bytes = 50;
  one.context = 1;
  for (const char* pattern : {"needle", "ne+dle"}) {
    one.pattern = pattern;
    const SearchResult result = found(tree.fd(), one);
    CHECK(result.matches == 2);
    CHECK(result.files_with_long_lines == 1);
    REQUIRE(result.files.size() == 1);
    const auto& lines = result.files[0].lines;
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].text == "first");
    CHECK(lines[1].number == 2);
    CHECK(lines[1].column == longest.size() + 1);
    CHECK(lines[1].text.find("needle") != std::string::npos);
    CHECK(lines[1].cut_before + lines[1].text.size() + lines[1].cut_after == longest.size() + 6 + 3 * k_bound);
    CHECK(lines[2].number == 3);
    CHECK(lines[2].text == "last needle");
  }
  CHECK(found(tree.fd(), request("^b")).matches == 0);
  CHECK(found(tree.fd(), request("^a")).matches == 1);
  CHECK(found(tree.fd(), request("a$")).matches == 0);
  CHECK(found(tree.fd(), request("b$")).matches == 1);
  CHECK(found(tree.fd(), request("^(first|last)")).matches == 2);
}

TEST_CASE("memory is bounded: 200 MB in one line, and millions of matching lines") {
  const Tree tree;
  const std::string piece(1'000'000, 'x');
  {
    std::ofstream line(tree.path("line"));
    std::ofstream lines(tree.path("lines"));
    std::string short_lines;
    for (int i = 0; i < 20'000; ++i) {
      short_lines += "xxxx\n";
    }
    for (int i = 0; i < 200; ++i) {
      line << piece;
      lines << short_lines;
    }
    line << "needle";
  }
  const std::size_t before = peak_kib_of([] { return true; });
  const std::size_t peak = peak_kib_of([&] {
    const auto in_line = agent::search(tree.fd(), request("needle"));
    SearchRequest many = request("x");
    many.offset = 3'000'000;
    const auto in_lines = agent::search(tree.fd(), many);
    return in_line && in_line->matches == 1 && in_lines && in_lines->matches == 4'000'001 && in_lines->shown == 100;
  });
  CHECK(peak - before < 32 * 1024);
}

TEST_CASE("a match may span lines if that is asked for") {
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

TEST_CASE("a match across lines is found in a large file, in windows, and that is said") {
  std::string text;
  for (int i = 0; i < 400'000; ++i) {
    text += i % 1000 == 0 ? "begin\nfinish\n" : "nothing of it\n";
  }
  const Tree tree;
  tree.put("f", text);
  for (const char* pattern : {"begin\\s+finish", "(?:b|x)[e]gin\n[f]inish", "gin\nfin"}) {
    SearchRequest one = request(pattern);
    one.multi_line = true;
    one.offset = 399;
    const SearchResult result = found(tree.fd(), one);
    CHECK(result.matches == 400);
    CHECK(result.files_in_windows == 1);
    CHECK(shown(result) == "f:399400:begin\nf:399401:finish\n");
  }
}

TEST_CASE("files that grow, shrink and vanish while they are searched do no harm") {
  const Tree tree;
  std::string content;
  for (int i = 0; i < 50'000; ++i) {
    content += "needle\n";
  }
  std::atomic<bool> stop = false;
  std::thread changer([&] {
    for (int i = 0; !stop; ++i) {
      const std::string name = fmt::format("f{}", i % 5);
      tree.put(name, content);
      ::truncate(tree.path(name).c_str(), i % 3 * 100'000);
      std::ofstream(tree.path(name), std::ios::app) << content;
      if (i % 4 == 0) {
        std::filesystem::remove(tree.path(name));
      }
    }
  });
  for (int i = 0; i < 30; ++i) {
    SearchRequest one = request(i % 2 == 0 ? "needle" : "n[e]edle$");
    one.offset = static_cast<std::uint64_t>(i) * 1000;
    const auto result = agent::search(tree.fd(), one);
    CHECK(result);
  }
  stop = true;
  changer.join();
}

TEST_CASE("what is found is what a plain search line by line finds") {
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
