#include "agent/files/change/content_store.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/files/revision.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::ContentStore;
using agent::revision_of;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_no_limit = 1ULL << 30U;
constexpr agent::ContentPack::Limits k_no_pack{0, 0};

struct StoreWorld {
  test::TemporaryDirectory state;

  [[nodiscard]] ContentStore open() const { return open(ContentStore::Limits{}); }
  /// Every content is a separate file.
  [[nodiscard]] ContentStore open_without_pack() const { return open({.pack = k_no_pack}); }
  [[nodiscard]] ContentStore open(ContentStore::Limits limits) const {
    auto store = ContentStore::open(state.fd(), limits);
    REQUIRE(store);
    return std::move(*store);
  }
  [[nodiscard]] fs::path path_of(const std::string& content) const { return state / "contents" / revision_of(content); }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(state / "contents")) {
      sum += entry.file_size();
    }
    return sum;
  }
  [[nodiscard]] long count() const { return std::distance(fs::directory_iterator(state / "contents"), {}); }
};

Result<void> put(ContentStore& store, const std::string& content) {
  return store.put(revision_of(content), content);
}

Result<std::string> get(ContentStore& store, const std::string& content) {
  return store.get(revision_of(content), k_no_limit);
}

}  // namespace

TEST_CASE("content store: a content is found by its revision, also by a later process") {
  const StoreWorld world;
  const std::string content("any\0bytes\xFF", 10);
  {
    ContentStore store = world.open();
    CHECK(put(store, content));
    CHECK(put(store, ""));
  }
  ContentStore store = world.open();
  CHECK(get(store, content) == content);
  CHECK(get(store, "") == "");
}

TEST_CASE("content store: only large contents are separate files") {
  const StoreWorld world;
  ContentStore store = world.open();
  const std::string large(ContentStore::k_max_remembered_bytes + 1, 'x');
  REQUIRE(put(store, "small"));
  CHECK(world.count() == 0);
  REQUIRE(put(store, large));
  CHECK(world.count() == 1);
  CHECK(get(store, large) == large);
}

TEST_CASE("content store: a content can be read as a file, from pack and file") {
  const StoreWorld world;
  ContentStore store = world.open();
  for (const std::string& content : {std::string("small"), std::string(2'000'000, 'x')}) {
    REQUIRE(put(store, content));
    const auto file = store.open_content(revision_of(content));
    REQUIRE(file);
    struct stat info {};
    CHECK(::fstat(file->get(), &info) == 0);
    CHECK(static_cast<std::size_t>(info.st_size) == content.size());
    CHECK(agent::revision_of_file(file->get()) == revision_of(content));
  }
}

TEST_CASE("content store: a content becomes a file while the pack is locked") {
  const StoreWorld world;
  ContentStore store = world.open();
  REQUIRE(put(store, "first"));
  {
    const Fd other(::openat(world.state.fd(), "recent.contents", O_RDWR | O_CLOEXEC));
    REQUIRE(::flock(other.get(), LOCK_EX | LOCK_NB) == 0);
    CHECK(put(store, "second"));
    CHECK(world.count() == 1);
  }
  CHECK(get(store, "first") == "first");
  CHECK(get(store, "second") == "second");
}

TEST_CASE("content store: a damaged content in the pack does not hide an intact file") {
  const StoreWorld world;
  {
    ContentStore store = world.open_without_pack();
    REQUIRE(put(store, "content"));
  }
  ContentStore store = world.open();
  REQUIRE(put(store, "content"));
  {
    std::fstream pack(world.state / "recent.contents");
    pack.seekp(-3, std::ios::end);
    pack << "bad";
  }
  CHECK(get(store, "content") == "content");
  CHECK(agent::revision_of_file(store.open_content(revision_of("content"))->get()) == revision_of("content"));
}

TEST_CASE("content store: a file of an earlier version is found") {
  const StoreWorld world;
  {
    ContentStore store = world.open_without_pack();
    REQUIRE(put(store, "kept by an earlier one"));
  }
  ContentStore store = world.open();
  CHECK(get(store, "kept by an earlier one") == "kept by an earlier one");
}

TEST_CASE("content store: put_file stores the content of a file") {
  const StoreWorld world;
  ContentStore store = world.open();
  const std::string content(300'000, 'x');
  std::ofstream(world.state / "file") << content;
  const Fd file(::open((world.state / "file").c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(store.put_file(revision_of(content), file.get(), content.size()));
  CHECK(get(store, content) == content);
}

TEST_CASE("content store: a missing content has expired, one over the limit is rejected") {
  const StoreWorld world;
  ContentStore store = world.open();
  CHECK(get(store, "never put").error().code == ErrorCode::content_expired);
  REQUIRE(put(store, "12345"));
  CHECK(store.get(revision_of("12345"), 4).error().code == ErrorCode::too_large);
}

TEST_CASE("content store: a revision is never used as a path") {
  const StoreWorld world;
  ContentStore store = world.open();
  std::ofstream(world.state / "secret") << "x";
  REQUIRE(::mkfifo((world.state / "contents" / "pipe").c_str(), 0600) == 0);
  for (const std::string& revision :
       {std::string("../secret"), (world.state / "secret").string(), std::string("pipe"), std::string(),
        std::string("."), std::string(32, 'g'), std::string(31, 'a'), std::string("/dev/tty")}) {
    CAPTURE(revision);
    CHECK(store.get(revision, k_no_limit).error().code == ErrorCode::content_expired);
    CHECK(store.open_content(revision).error().code == ErrorCode::content_expired);
  }
}

TEST_CASE("content store: a damaged content is rejected and replaced by the next put") {
  bool packed = false;
  SUBCASE("in the pack") {
    packed = true;
  }
  SUBCASE("as a file") {}
  const StoreWorld world;
  ContentStore store = packed ? world.open() : world.open_without_pack();
  REQUIRE(put(store, "good content"));
  if (packed) {
    std::fstream pack(world.state / "recent.contents");
    pack.seekp(-3, std::ios::end);
    pack << "bad";
  } else {
    std::ofstream(world.path_of("good content")) << "bad";
  }
  CHECK(get(store, "good content").error().code == (packed ? ErrorCode::content_expired : ErrorCode::content_damaged));
  CHECK(put(store, "good content"));
  CHECK(get(store, "good content") == "good content");
}

TEST_CASE("content store: the least recently used content is removed at the limit") {
  const StoreWorld world;
  constexpr std::uint64_t k_bytes = 64 * 1024;
  ContentStore store = world.open({.bytes = k_bytes, .count = 5000, .pack = k_no_pack});
  const std::string kept(1000, 'k');
  REQUIRE(put(store, kept));
  for (int i = 0; i < 500; ++i) {
    REQUIRE(put(store, std::to_string(i) + std::string(1000, 'x')));
    REQUIRE(put(store, kept));  // a second use
    REQUIRE(world.bytes() <= k_bytes);
  }
  CHECK(get(store, kept) == kept);
  CHECK(get(store, "499" + std::string(1000, 'x')));
  CHECK(!get(store, "0" + std::string(1000, 'x')));
}

TEST_CASE("content store: the number of small contents is bounded") {
  const StoreWorld world;
  ContentStore store = world.open({.bytes = 1024 * 1024, .count = 64, .pack = k_no_pack});
  for (int i = 0; i < 500; ++i) {
    REQUIRE(put(store, std::to_string(i)));
    REQUIRE(world.count() <= 64 + 64 / 16 + 1);
  }
}

TEST_CASE("content store: a content over half the limit is rejected, removing nothing") {
  const StoreWorld world;
  ContentStore store = world.open({.bytes = 10'000, .count = 100, .pack = k_no_pack});
  REQUIRE(put(store, "small"));
  CHECK(put(store, std::string(9000, 'x')).error().code == ErrorCode::too_large);
  CHECK(get(store, "small") == "small");
}

TEST_CASE("content store: limits include contents of earlier processes") {
  const StoreWorld world;
  for (int process = 0; process < 20; ++process) {
    ContentStore store = world.open({.bytes = 20'000, .count = 100, .pack = k_no_pack});
    REQUIRE(put(store, std::to_string(process) + std::string(5000, 'x')));
    REQUIRE(world.bytes() <= 20'000);
  }
}

TEST_CASE("content store: concurrent puts of one content succeed, it is never partial") {
  bool packed = false;
  SUBCASE("in the pack") {
    packed = true;
  }
  SUBCASE("as files") {}
  const StoreWorld world;
  (void)world.open();
  for (int round = 0; round < 50; ++round) {
    const std::string content = std::to_string(round) + std::string(300'000, 'x');
    const auto work = [&](bool& well) {
      ContentStore store = packed ? world.open() : world.open_without_pack();
      well = put(store, content) && get(store, content) == content;
    };
    bool first = false;
    bool second = false;
    std::thread other([&] { work(second); });
    work(first);
    other.join();
    REQUIRE(first);
    REQUIRE(second);
  }
}

TEST_CASE("content store: an incomplete file of a killed process is removed") {
  const StoreWorld world;
  (void)world.open();
  const fs::path partial = world.state / "contents" / (revision_of("x") + ".1.new");
  std::ofstream(partial) << "hal";
  const timespec long_ago{1'000'000, 0};
  const std::array<timespec, 2> times = {long_ago, long_ago};
  REQUIRE(::utimensat(AT_FDCWD, partial.c_str(), times.data(), 0) == 0);
  ContentStore store = world.open_without_pack();
  CHECK(get(store, "x").error().code == ErrorCode::content_expired);
  REQUIRE(put(store, "y"));
  CHECK(!fs::exists(partial));
}
