#include "agent/files/search/find_files.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "unit/agent/files/search/tree.hpp"

using namespace dockbridge;
using Listing = agent::FoundPage;
using ListOptions = wire::FileListRequest;
using test::Tree;

namespace {

Listing listing(const Tree& tree, const ListOptions& request = {}) {
  auto result = agent::list_directory(tree.fd(), request);
  REQUIRE(result);
  return std::move(*result);
}

std::vector<std::string> paths(const Listing& listing) {
  std::vector<std::string> found;
  for (const auto& entry : listing.entries) {
    found.push_back(entry.path);
  }
  return found;
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("listing: describes each entry") {
  const Tree tree;
  tree.put("file", "12345");
  REQUIRE(::chmod(tree.path("file").c_str(), 04751) == 0);
  tree.put("dir/x");
  tree.put(".hidden");
  tree.link("dir/x", "link");
  tree.put("a\nb\xff");
  ListOptions detailed;
  detailed.details = true;
  const Listing all = listing(tree, detailed);
  REQUIRE(paths(all) == Paths{".hidden", "a\nb\xff", "dir", "file", "link"});
  CHECK(all.entries[2].type == wire::FileType::directory);
  CHECK(all.entries[3].type == wire::FileType::regular);
  CHECK(all.entries[3].size == 5);
  CHECK(all.entries[3].mode == 04751);
  CHECK(all.entries[3].modified_at_ms > 1'600'000'000'000);
  CHECK(all.entries[3].target == "");
  CHECK(all.entries[4].type == wire::FileType::symlink);
  CHECK(all.entries[4].target == "dir/x");
  CHECK(all.total == 5);
  CHECK_FALSE(all.more);
}

TEST_CASE("listing: without details, has only names, types and targets") {
  const Tree tree;
  tree.put("file", "12345");
  tree.put("dir/x");
  tree.link("dir/x", "link");
  const Listing plain = listing(tree);
  REQUIRE(paths(plain) == Paths{"dir", "file", "link"});
  CHECK(plain.entries[0].type == wire::FileType::directory);
  CHECK(plain.entries[1].type == wire::FileType::regular);
  CHECK(plain.entries[1].size == 0);
  CHECK(plain.entries[1].modified_at_ms == 0);
  CHECK(!plain.entries[1].mode);
  CHECK(plain.entries[2].type == wire::FileType::symlink);
  CHECK(plain.entries[2].target == "dir/x");
}

TEST_CASE("listing: depth, globs and ignore rules select the entries") {
  const Tree tree;
  for (const char* path : {"a/b/c", "a/d", "e", "out/f", ".g"}) {
    tree.put(path);
  }
  tree.put(".gitignore", "out\n");
  tree.link("../a", "a/link");
  CHECK(paths(listing(tree)) == Paths{".g", ".gitignore", "a", "e", "out"});
  ListOptions one;
  one.depth = 2;
  CHECK(paths(listing(tree, one)) == Paths{".g", ".gitignore", "a", "a/b", "a/d", "a/link", "e", "out", "out/f"});
  CHECK(listing(tree, one).entries[5].target == "../a");
  one.depth = 0;
  one.honour_ignore_files = true;
  one.ignore = {"link", "d"};
  CHECK(paths(listing(tree, one)) == Paths{".g", ".gitignore", "a", "a/b", "a/b/c", "e"});
  CHECK(listing(tree, one).walked.ignored == 1);
  CHECK(listing(tree, one).walked.excluded == 2);
  one.ignore = {"["};
  CHECK(agent::list_directory(tree.fd(), one).error().code == ErrorCode::bad_glob);
}

TEST_CASE("listing: lists an empty directory, rejects a file") {
  const Tree tree;
  CHECK(listing(tree).total == 0);
  tree.put("file");
  const Fd file(::open(tree.path("file").c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(agent::list_directory(file.get(), {}).error().code == ErrorCode::io_error);
}

TEST_CASE("listing: a page of a huge directory is a part of the sorted names") {
  const Tree tree;
  for (int i = 0; i < 5'000; ++i) {
    REQUIRE(::mknodat(tree.fd(), fmt::format("{:05}", i).c_str(), S_IFREG | 0600, 0) == 0);
  }
  ListOptions one;
  one.max = 3;
  CHECK(paths(listing(tree, one)) == Paths{"00000", "00001", "00002"});
  one.offset = 2'345;
  const Listing page = listing(tree, one);
  CHECK(paths(page) == Paths{"02345", "02346", "02347"});
  CHECK(page.total == 5'000);
  CHECK(page.more);
  one.offset = 4'999;
  CHECK(paths(listing(tree, one)) == Paths{"04999"});
  CHECK_FALSE(listing(tree, one).more);
}
