#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "agent/files/search/text_reader.hpp"
#include "unit/agent/files/search/searches.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Runs a function in a separate process, which must succeed, and returns the peak memory of that process.
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

TEST_CASE("searched files: a file with a NUL byte anywhere is skipped") {
  const Tree tree;
  tree.put("early", std::string("needle\n\0", 8));
  tree.put("late", "needle\n" + std::string(500'000, '\n') + std::string(1, '\0'));
  tree.put("text", "needle\n");
  const SearchResult result = found(tree.fd(), request("needle"));
  CHECK(shown(result) == "text:1:needle\n");
  CHECK(result.binary_skipped == 2);
  CHECK(result.files_searched == 1);
}

TEST_CASE("searched files: UTF-16 and UTF-8 with a BOM are searched as text") {
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

TEST_CASE("searched files: only regular files are opened, links not followed") {
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
  CHECK(result.walked.unreadable == 0);
}

TEST_CASE("searched files: unreadable files are counted and named") {
  const Tree tree;
  tree.put("closed", "x\n");
  tree.put("open", "x\n");
  REQUIRE(::chmod(tree.path("closed").c_str(), 0) == 0);
  REQUIRE(::chmod(tree.path("").c_str(), 0755) == 0);
  peak_kib_of([&] {
    // Root can read everything.
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {
      return false;
    }
    const auto result = agent::search(tree.fd(), request("x"));
    return result && result->walked.unreadable == 1 && result->matches == 1 &&
           result->walked.unreadable_paths == std::vector<std::string>{"closed: Permission denied"};
  });
}

TEST_CASE("searched files: matches are found across block boundaries") {
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
    const SearchResult result = found(tree.fd(), one, 10);
    CHECK(result.matches == hits);
    REQUIRE(result.shown == hits);
    CHECK(std::to_string(result.files[0].lines.back().number) == last);
  }
}

TEST_CASE("searched files: an oversized line is searched in pieces, and reported") {
  constexpr std::size_t k_bound = agent::TextReader::k_max_line_bytes;
  const std::string longest(k_bound - 3, 'a');  // the match crosses the end of the first piece
  const Tree tree;
  tree.put("f", "first\n" + longest + "needle" + std::string(3 * k_bound, 'b') + "\nlast needle\n");
  SearchRequest one = request("needle");
  one.context = 1;
  for (const char* pattern : {"needle", "ne+dle"}) {
    one.pattern = pattern;
    const SearchResult result = found(tree.fd(), one, 50);
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

TEST_CASE("searched files: huge lines and millions of matches use bounded memory") {
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

TEST_CASE("searched files: multi-line search uses windows in a large file") {
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

TEST_CASE("searched files: files may grow, shrink and vanish meanwhile") {
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
