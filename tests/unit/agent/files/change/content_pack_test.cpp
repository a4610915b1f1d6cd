#include "agent/files/change/content_pack.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/files/revision.hpp"
#include "support/temporary_directory.hpp"
#include "util/file.hpp"

using namespace dockbridge;
using agent::ContentPack;
using agent::revision_of;
namespace fs = std::filesystem;

namespace {

constexpr ContentPack::Limits k_roomy{.bytes = 4 * 1024 * 1024, .count = 1000};

struct PackWorld {
  test::TemporaryDirectory state;
  fs::path recent = state / "recent.contents";

  [[nodiscard]] ContentPack open(ContentPack::Limits limits = k_roomy) const { return {state.fd(), limits}; }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(state.path())) {
      sum += entry.file_size();
    }
    return sum;
  }
};

bool put(ContentPack& pack, const std::string& content) {
  return pack.put(revision_of(content), content);
}

bool has(ContentPack& pack, const std::string& content) {
  return pack.get(revision_of(content)) == content;
}

/// Different contents of the same size.
std::string numbered(int number, std::size_t size = 1000) {
  std::string content = std::to_string(number);
  content.resize(size, 'x');
  return content;
}

}  // namespace

TEST_CASE("content pack: a content is found, also by a process that opened it before") {
  const PackWorld world;
  ContentPack other = world.open();
  CHECK(!other.get(revision_of("a")));
  ContentPack pack = world.open();
  const std::string bytes("any\0bytes\xFF", 10);
  CHECK(put(pack, "a"));
  CHECK(put(pack, bytes));
  CHECK(put(pack, ""));
  for (ContentPack* reader : {&pack, &other}) {
    CHECK(has(*reader, "a"));
    CHECK(has(*reader, bytes));
    CHECK(has(*reader, ""));
  }
}

TEST_CASE("content pack: the same content is stored once by all processes") {
  const PackWorld world;
  ContentPack pack = world.open();
  ContentPack other = world.open();
  REQUIRE(put(pack, numbered(1)));
  const std::uint64_t bytes = world.bytes();
  CHECK(put(pack, numbered(1)));
  CHECK(put(other, numbered(1)));
  CHECK(world.bytes() == bytes);
}

TEST_CASE("content pack: a full pack drops the older half, not recent contents") {
  const PackWorld world;
  constexpr std::uint64_t k_bytes = 20'000;
  ContentPack pack = world.open({.bytes = k_bytes, .count = 1000});
  const std::string used = "used again and again";
  for (int i = 0; i < 100; ++i) {
    REQUIRE(put(pack, numbered(i)));
    REQUIRE(put(pack, used));
    REQUIRE(has(pack, numbered(i)));
    REQUIRE(has(pack, numbered(std::max(0, i - 7))));
    REQUIRE(world.bytes() <= k_bytes);
  }
  CHECK(has(pack, used));
  CHECK(!has(pack, numbered(0)));
}

TEST_CASE("content pack: the number of contents is bounded") {
  const PackWorld world;
  ContentPack pack = world.open({.bytes = 1024 * 1024, .count = 10});
  for (int i = 0; i < 100; ++i) {
    REQUIRE(put(pack, std::to_string(i)));
  }
  int there = 0;
  for (int i = 0; i < 100; ++i) {
    there += has(pack, std::to_string(i)) ? 1 : 0;
  }
  CHECK(there <= 10);
  CHECK(there >= 5);
}

TEST_CASE("content pack: a process continues after another one rotated the files") {
  const PackWorld world;
  constexpr ContentPack::Limits k_small{.bytes = 10'000, .count = 1000};
  ContentPack first = world.open(k_small);
  ContentPack second = world.open(k_small);
  for (int i = 0; i < 40; ++i) {
    ContentPack& writer = i % 3 == 0 ? first : second;
    ContentPack& reader = i % 3 == 0 ? second : first;
    REQUIRE(put(writer, numbered(i)));
    REQUIRE(has(reader, numbered(i)));
    REQUIRE(has(reader, numbered(std::max(0, i - 3))));
  }
}

TEST_CASE("content pack: a content over the limit is rejected and removes nothing") {
  const PackWorld world;
  ContentPack pack = world.open();
  ContentPack small = world.open({.bytes = 1000, .count = 10});
  REQUIRE(put(pack, "a"));
  CHECK(!put(pack, std::string(ContentPack::k_max_content_bytes + 1, 'x')));
  CHECK(!put(small, std::string(500, 'x')));
  CHECK(has(pack, "a"));
}

TEST_CASE("content pack: put fails at once while another process adds") {
  const PackWorld world;
  ContentPack pack = world.open();
  REQUIRE(put(pack, "a"));
  {
    const Fd other(::open(world.recent.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::flock(other.get(), LOCK_EX | LOCK_NB) == 0);
    CHECK(!put(pack, "b"));
    CHECK(has(pack, "a"));
  }
  CHECK(put(pack, "b"));
}

TEST_CASE("content pack: an incomplete content is ignored and overwritten") {
  const PackWorld world;
  {
    ContentPack pack = world.open();
    REQUIRE(put(pack, "whole"));
    REQUIRE(put(pack, "a longer one that is cut"));
  }
  const std::string all = read_file_at(world.state.fd(), "recent.contents", 1000).value_or("");
  const std::size_t whole = all.size() - std::string("a longer one that is cut").size() - 40;
  for (std::size_t length = all.size() - 1; length > whole; --length) {
    std::ofstream(world.recent, std::ios::binary) << all.substr(0, length);
    ContentPack pack = world.open();
    REQUIRE(has(pack, "whole"));
    REQUIRE(!pack.get(revision_of("a longer one that is cut")));
    REQUIRE(put(pack, "next"));
    ContentPack later = world.open();
    REQUIRE(has(later, "whole"));
    REQUIRE(has(later, "next"));
  }
}

TEST_CASE("content pack: a removed file frees its space even while it is open") {
  const PackWorld world;
  constexpr ContentPack::Limits k_small{.bytes = 10'000, .count = 1000};
  ContentPack pack = world.open(k_small);
  ContentPack idle = world.open(k_small);
  REQUIRE(put(pack, numbered(0)));
  REQUIRE(has(idle, numbered(0)));
  const Fd first(::open(world.recent.c_str(), O_RDONLY | O_CLOEXEC));
  for (int i = 1; i < 20; ++i) {
    REQUIRE(put(pack, numbered(i)));
  }
  struct stat info {};
  REQUIRE(::fstat(first.get(), &info) == 0);
  CHECK(info.st_nlink == 0);
  CHECK(info.st_size == 0);
  CHECK(!idle.get(revision_of(numbered(0))));
  CHECK(has(idle, numbered(19)));
}

TEST_CASE("content pack: all processes continue with a truncated file") {
  const PackWorld world;
  ContentPack first = world.open();
  ContentPack second = world.open();
  REQUIRE(put(first, "kept"));
  const auto length = fs::file_size(world.recent);
  REQUIRE(put(first, numbered(1)));
  fs::resize_file(world.recent, length);
  REQUIRE(put(first, "after"));
  REQUIRE(put(second, "more"));
  for (ContentPack* pack : {&first, &second}) {
    CHECK(has(*pack, "kept"));
    CHECK(has(*pack, "after"));
    CHECK(has(*pack, "more"));
    CHECK(!pack->get(revision_of(numbered(1))));
  }
}

TEST_CASE("content pack: a truncated file that has grown again is extended at its end") {
  const PackWorld world;
  ContentPack first = world.open();
  ContentPack second = world.open();
  REQUIRE(put(first, numbered(1)));
  fs::resize_file(world.recent, 0);
  CHECK(!first.get(revision_of(numbered(1))));
  for (int i = 2; i < 5; ++i) {
    REQUIRE(put(second, numbered(i, 700)));
  }
  REQUIRE(put(first, numbered(5)));
  ContentPack later = world.open();
  for (int i = 2; i < 5; ++i) {
    CHECK(has(later, numbered(i, 700)));
  }
  CHECK(has(later, numbered(5)));
}

TEST_CASE("content pack: a file over the limits is read only up to them") {
  const PackWorld world;
  {
    ContentPack large = world.open({.bytes = 4 * 1024 * 1024, .count = 10'000});
    for (int i = 0; i < 200; ++i) {
      REQUIRE(put(large, std::to_string(i)));
    }
  }
  ContentPack pack = world.open({.bytes = 4 * 1024 * 1024, .count = 100});
  CHECK(has(pack, "49"));
  CHECK(!pack.get(revision_of("50")));
  CHECK(put(pack, "new"));
  CHECK(has(pack, "new"));
}

TEST_CASE("content pack: a content of another size is not found") {
  const PackWorld world;
  std::ofstream(world.recent, std::ios::binary) << revision_of("content") << std::string(8, '\0');
  ContentPack pack = world.open();
  CHECK(put(pack, "content"));
  CHECK(has(pack, "content"));
}

TEST_CASE("content pack: the rest of an incomplete content is never read") {
  const PackWorld world;
  const std::string inner = "never put";
  ContentPack pack = world.open();
  {
    // This would follow directly behind the next content.
    std::string torn = "next" + revision_of(inner);
    torn += static_cast<char>(inner.size()) + std::string(7, '\0') + inner + "and more";
    REQUIRE(put(pack, torn));
    fs::resize_file(world.recent, fs::file_size(world.recent) - 1);
  }
  ContentPack next = world.open();
  REQUIRE(put(next, "next"));
  ContentPack later = world.open();
  CHECK(has(later, "next"));
  CHECK(!later.get(revision_of(inner)));
}

TEST_CASE("content pack: a damaged file is overwritten, another file type is left alone") {
  const PackWorld world;
  SUBCASE("zeros, as after a power failure") {
    std::ofstream(world.recent) << std::string(5000, '\0');
    ContentPack pack = world.open();
    CHECK(!pack.get(revision_of("a")));
    CHECK(put(pack, "a"));
    CHECK(has(pack, "a"));
  }
  SUBCASE("a head with a size over the limit") {
    std::ofstream(world.recent) << revision_of("a") << std::string(8, '\x7F') << std::string(100, 'x');
    ContentPack pack = world.open();
    CHECK(!pack.get(revision_of("a")));
    CHECK(put(pack, "a"));
    CHECK(has(pack, "a"));
  }
  SUBCASE("a directory") {
    fs::create_directory(world.recent);
    ContentPack pack = world.open();
    CHECK(!put(pack, "a"));
    CHECK(!pack.get(revision_of("a")));
  }
  SUBCASE("a symbolic link") {
    std::ofstream(world.state / "elsewhere") << "untouched";
    fs::create_symlink(world.state / "elsewhere", world.recent);
    ContentPack pack = world.open();
    CHECK(!put(pack, "a"));
    CHECK(fs::file_size(world.state / "elsewhere") == 9);
  }
  SUBCASE("a FIFO") {
    REQUIRE(::mkfifo(world.recent.c_str(), 0600) == 0);
    ContentPack pack = world.open();
    CHECK(!put(pack, "a"));
    CHECK(!pack.get(revision_of("a")));
  }
}

TEST_CASE("content pack: concurrent processes lose no content that was accepted") {
  const PackWorld world;
  constexpr int k_threads = 4;
  constexpr int k_each = 2000;
  constexpr std::size_t k_size = 10;
  constexpr ContentPack::Limits k_all{.bytes = 4 * 1024 * 1024, .count = 4 * k_threads * k_each};
  std::vector<std::vector<int>> kept(k_threads);
  std::vector<std::thread> threads;
  threads.reserve(k_threads);
  for (int thread = 0; thread < k_threads; ++thread) {
    threads.emplace_back([&, thread] {
      ContentPack pack = world.open(k_all);
      for (int i = 0; i < k_each; ++i) {
        const int number = thread * k_each + i;
        if (put(pack, numbered(number, k_size))) {
          kept[static_cast<std::size_t>(thread)].push_back(number);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ContentPack pack = world.open(k_all);
  std::size_t count = 0;
  for (const auto& numbers : kept) {
    for (const int number : numbers) {
      REQUIRE(has(pack, numbered(number, k_size)));
      ++count;
    }
  }
  CHECK(count > 0);
}
