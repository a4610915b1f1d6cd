#include "util/path_walk.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
namespace fs = std::filesystem;

namespace {

FileIdentity identity_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return {info.st_dev, info.st_ino};
}

/// A directory that is shared with a container, and another directory that is not.
struct Shared {
  test::TemporaryDirectory world;
  fs::path shared = world / "shared";
  fs::path own = world / "own";

  Shared() {
    fs::create_directories(shared / "sub");
    fs::create_directories(own / "sub");
  }
  [[nodiscard]] std::vector<std::string> mounts() const { return {shared.string()}; }
};

}  // namespace

TEST_CASE("path walk: resolves links and dots like the kernel") {
  const Shared s;
  fs::create_symlink("sub", s.own / "relative");
  fs::create_symlink(s.own / "sub", s.own / "absolute");
  fs::create_symlink("../own/./absolute", s.own / "chain");
  std::ofstream(s.own / "sub" / "file") << "x";
  for (const char* path : {"sub", "relative", "absolute", "chain", "chain/../sub/", "sub/..//sub/.", "chain/file"}) {
    CAPTURE(path);
    const auto walk = PathWalk::to((s.own / path).string());
    REQUIRE(walk);
    CHECK(walk->identity() == identity_of(s.own / path));
    CHECK(walk->is_directory() == fs::is_directory(s.own / path));
  }
  CHECK(PathWalk::to("/")->identity() == identity_of("/"));
  CHECK(PathWalk::to("/../..")->identity() == identity_of("/"));
}

TEST_CASE("path walk: a missing file or a loop of links is an error") {
  const Shared s;
  std::ofstream(s.own / "file") << "x";
  fs::create_symlink("circle", s.own / "circle");
  fs::create_symlink("nowhere", s.own / "dangling");
  for (const char* path : {"none", "file/", "file/below", "circle", "dangling", "circle/below"}) {
    CAPTURE(path);
    CHECK_FALSE(PathWalk::to((s.own / path).string()));
  }
  CHECK_FALSE(PathWalk::to("relative"));
  CHECK_FALSE(PathWalk::to(""));
  CHECK_FALSE(PathWalk::to(std::string("/\0etc", 5)));
}

TEST_CASE("path walk: a link inside a given directory is reported") {
  const Shared s;
  fs::create_symlink(s.own / "sub", s.shared / "planted");
  fs::create_symlink(s.shared / "sub", s.own / "into");
  fs::create_symlink(s.shared / "planted", s.own / "twice");
  fs::create_symlink(s.shared, s.world / "alias");
  fs::create_symlink("../planted", s.shared / "sub" / "deep");
  const auto link = [&](const fs::path& path, const std::vector<std::string>& mounts) {
    const auto walk = PathWalk::to(path.string());
    REQUIRE(walk);
    return walk->link_inside(mounts).value_or("");
  };
  CHECK(link(s.own / "sub", s.mounts()).empty());
  CHECK(link(s.own / "into", s.mounts()).empty());
  CHECK(link(s.shared / "sub", s.mounts()).empty());
  CHECK(link(s.world / "alias/sub", s.mounts()).empty());
  CHECK(link(s.shared / "planted", s.mounts()) == (s.shared / "planted").string());
  CHECK(link(s.own / "twice", s.mounts()) == (s.shared / "planted").string());
  CHECK(link(s.world / "alias/planted", s.mounts()) == (s.shared / "planted").string());
  CHECK(link(s.shared / "sub/deep", s.mounts()) == (s.shared / "sub/deep").string());
  // Compared by identity: the mount may have another path.
  CHECK(link(s.shared / "planted", {(s.world / "alias").string()}) == (s.shared / "planted").string());
  CHECK(link(s.shared / "planted", {s.own.string()}).empty());
  // The link to a shared directory lies outside it.
  CHECK(link(s.world / "alias/sub", {(s.world / "alias").string()}).empty());
  CHECK(link(s.shared / "planted", {}).empty());
}

TEST_CASE("path walk: a file depends on the directories that hold it or a link to it") {
  const Shared s;
  std::ofstream(s.shared / "file") << "x";
  std::ofstream(s.own / "file") << "x";
  fs::create_symlink(s.shared / "file", s.own / "link");
  const auto depends = [&](const fs::path& path) { return PathWalk::to(path.string())->depends_on(s.mounts()); };
  CHECK(depends(s.shared / "file"));
  CHECK(depends(s.shared));
  CHECK(depends(s.own / "link"));
  CHECK_FALSE(depends(s.own / "file"));
  CHECK_FALSE(depends(s.world.path()));
}
