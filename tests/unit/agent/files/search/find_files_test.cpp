#include "agent/files/search/find_files.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "agent/files/search/path_order.hpp"
#include "unit/agent/files/search/tree.hpp"

using namespace dockbridge;
using FindRequest = wire::FileGlobRequest;
using test::Tree;

namespace {

using Paths = std::vector<std::string>;

FindRequest glob_request(const std::string& pattern) {
  FindRequest one;
  one.pattern = pattern;
  return one;
}

Paths paths(const Tree& tree, const FindRequest& one) {
  const auto result = agent::find_files(tree.fd(), one);
  REQUIRE(result);
  Paths found;
  for (const auto& file : result->entries) {
    found.push_back(file.path);
  }
  return found;
}

void set_time(const Tree& tree, const std::string& path, std::int64_t seconds) {
  const std::array<timespec, 2> times = {timespec{seconds, 5}, timespec{seconds, 5}};
  REQUIRE(::utimensat(AT_FDCWD, tree.path(path).c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0);
}

}  // namespace

TEST_CASE("find files: a glob finds entries in path order, with their facts") {
  const Tree tree;
  for (const char* path : {"b.c", "a/z.c", "a.c", "a/b/c.c", "a/x.h", ".hidden.c", "out/o.c"}) {
    tree.put(path, "12345");
  }
  tree.put(".gitignore", "out\n");
  tree.link("a.c", "link.c");
  set_time(tree, "a.c", 1000);
  CHECK(paths(tree, glob_request("*.c")) == Paths{"a/b/c.c", "a/z.c", "a.c", "b.c", "link.c"});
  CHECK(paths(tree, glob_request("a/*")) == Paths{"a/x.h", "a/z.c"});
  CHECK(paths(tree, glob_request("a/**/*.{c,h}")) == Paths{"a/b/c.c", "a/x.h", "a/z.c"});
  const auto one = agent::find_files(tree.fd(), glob_request("a.c"));
  REQUIRE(one->entries.size() == 1);
  CHECK(one->entries[0].size == 5);
  CHECK(one->entries[0].type == wire::FileType::regular);
  CHECK(one->entries[0].modified_at_ms == 1'000'000);
  CHECK(!one->entries[0].mode);
  CHECK(one->walked.hidden == 2);
  CHECK(one->walked.ignored == 1);
  CHECK(paths(tree, glob_request("a*")) == Paths{"a.c"});
  CHECK(agent::find_files(tree.fd(), glob_request("[")).error().code == ErrorCode::bad_glob);
}

TEST_CASE("find files: newest first, equal times by path") {
  const Tree tree;
  tree.put("old");
  tree.put("b/new");
  tree.put("same1");
  tree.put("a/same2");
  set_time(tree, "old", 1);
  set_time(tree, "b/new", 3000);
  set_time(tree, "same1", 200);
  set_time(tree, "a/same2", 200);
  FindRequest one = glob_request("*");
  one.newest_first = true;
  CHECK(paths(tree, one) == Paths{"b/new", "a/same2", "same1", "old"});
  one.offset = 1;
  one.max = 2;
  CHECK(paths(tree, one) == Paths{"a/same2", "same1"});
  const auto page = agent::find_files(tree.fd(), one);
  CHECK(page->total == 4);
  CHECK(page->more);
}

TEST_CASE("find files: pages are in order and have each file once") {
  const Tree tree;
  Paths all;
  for (int i = 0; i < 500; ++i) {
    all.push_back(fmt::format("d{}/e{}/f{}", i % 7, i % 3, i));
    tree.put(all.back(), "");
  }
  std::sort(all.begin(), all.end(), agent::path_less);
  FindRequest one = glob_request("f*");
  one.max = 33;
  Paths pages;
  for (; one.offset < 500; one.offset += 33) {
    const Paths page = paths(tree, one);
    pages.insert(pages.end(), page.begin(), page.end());
  }
  CHECK(pages == all);
}

TEST_CASE("first items: items beyond the limit are found in the next round") {
  struct Number {
    int value;
    bool operator<(const Number& other) const { return value < other.value; }
    [[nodiscard]] std::size_t bytes() const { return 10; }
  };
  std::vector<Number> numbers;
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back({i});
  }
  std::mt19937 random(5);
  for (const auto& [most, bytes] :
       {std::pair(7, 100'000), std::pair(1000, 95), std::pair(1, 1), std::pair(5000, 99'999)}) {
    std::vector<int> got;
    Number last{-1};
    bool all_known = false;
    while (!all_known) {
      std::shuffle(numbers.begin(), numbers.end(), random);
      const Number after = last;
      agent::FirstItems<Number> one(static_cast<std::size_t>(most), static_cast<std::size_t>(bytes), &after);
      agent::FirstItems<Number> other = one;
      for (const Number& number : numbers) {
        (random() % 3 == 0 ? one : other).add(number);
      }
      one.merge(std::move(other));
      all_known = !one.has_limit();
      const std::vector<Number> known = one.sorted();
      REQUIRE((all_known || !known.empty()));
      for (const Number& number : known) {
        got.push_back(number.value);
        last = number;
      }
    }
    REQUIRE(got.size() == 1000);
    CHECK(std::is_sorted(got.begin(), got.end()));
    CHECK(std::adjacent_find(got.begin(), got.end()) == got.end());
  }
}

TEST_CASE("path order: compares components") {
  CHECK(agent::path_less("a", "a/b"));
  CHECK(agent::path_less("a/b", "a.c"));
  CHECK(agent::path_less("a/z", "a b"));
  CHECK(agent::path_less("a", "\xff"));
  CHECK_FALSE(agent::path_less("a", "a"));
}
