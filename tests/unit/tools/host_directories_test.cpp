#include "tools/host_directories.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temporary_directory.hpp"
#include "tools/host_file.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::tools;
using test::code_of;
namespace fs = std::filesystem;

namespace {

/// A workspace that the container can write to, with an allowed directory in it, and a secret outside it.
struct Host {
  test::TemporaryDirectory world;
  fs::path workspace = world / "workspace";
  fs::path allowed = workspace / "allowed";
  fs::path outside = world / "outside";

  Host() {
    fs::create_directories(allowed);
    fs::create_directories(outside);
    std::ofstream(allowed / "file") << "harmless";
    std::ofstream(outside / "file") << "secret!!";
  }
  [[nodiscard]] Result<std::shared_ptr<const HostDirectories>> open(const fs::path& path, bool is_known = true) const {
    return HostDirectories::open({path.string()}, is_known ? workspace.string() : "");
  }
};

HostDirectories::WritableMounts mounts(const fs::path& path) {
  return [path] { return std::vector<std::string>{path.string()}; };
}

Result<std::vector<std::string>> no_engine() {
  return fail(ErrorCode::no_engine, "nobody answers");
}

std::string content_of(const HostPlace& place) {
  const auto file = open_host_file(place, place.way);
  std::string bytes(8, '\0');
  return file && ::read(file->get(), bytes.data(), bytes.size()) == 8 ? bytes : "";
}

}  // namespace

TEST_CASE("host directories: a missing directory or a plain file is an error at start") {
  const Host host;
  CHECK(code_of(host.open(host.world / "none")) == "bad_option");
  CHECK(code_of(host.open(host.allowed / "file")) == "bad_option");
  CHECK(host.open(host.world / "none").error().message.find("No such file or directory") != std::string::npos);
}

TEST_CASE("host directories: a directory replaced by a link is reported, not followed") {
  const Host host;
  const auto directories = host.open(host.allowed);
  REQUIRE(directories);
  const std::string path = (host.allowed / "file").string();
  REQUIRE((*directories)->place(path, no_engine));
  fs::rename(host.allowed, host.workspace / "moved");
  CHECK(code_of((*directories)->place(path, no_engine)) == "host_path_changed");
  fs::create_symlink(host.outside, host.allowed);
  CHECK(code_of((*directories)->place(path, no_engine)) == "host_path_changed");
  fs::remove(host.allowed);
  fs::create_directory(host.allowed);
  CHECK(code_of((*directories)->place(path, no_engine)) == "host_path_changed");
  fs::remove(host.allowed);
  fs::rename(host.workspace / "moved", host.allowed);
  CHECK((*directories)->place(path, no_engine));
}

TEST_CASE("host directories: a link in the workspace is rejected at start") {
  const Host host;
  fs::create_symlink(host.outside, host.workspace / "planted");
  const auto directories = host.open(host.workspace / "planted");
  CHECK(code_of(directories) == "unsafe_host_path");
  CHECK(directories.error().message.find("planted") != std::string::npos);
  CHECK(code_of(host.open(host.workspace / "planted/../outside")) == "unsafe_host_path");
}

TEST_CASE("host directories: a link outside the shared directories is followed") {
  const Host host;
  fs::create_symlink(host.allowed, host.world / "alias");
  const auto directories = host.open(host.world / "alias");
  REQUIRE(directories);
  const auto place = (*directories)->place((host.world / "alias/file").string(), mounts(host.workspace));
  REQUIRE(place);
  CHECK(content_of(*place) == "harmless");
}

TEST_CASE("host directories: a link in a mount is rejected once the mounts are known") {
  const Host host;
  fs::create_symlink(host.outside, host.workspace / "planted");
  const auto directories = host.open(host.workspace / "planted", false);
  REQUIRE(directories);
  const std::string path = (host.workspace / "planted/file").string();
  CHECK(code_of((*directories)->place(path, mounts(host.workspace))) == "unsafe_host_path");
  CHECK((*directories)->place(path, mounts(host.allowed)));
  // If the mounts are unknown, nothing is opened.
  CHECK(code_of((*directories)->place(path, no_engine)) == "no_engine");
}

TEST_CASE("host directories: a swap at any moment reaches no other directory") {
  const Host host;
  const auto directories = host.open(host.allowed);
  REQUIRE(directories);
  const fs::path link = host.workspace / "link";
  fs::create_symlink(host.outside, link);
  std::atomic<bool> over = false;
  std::thread container([&] {
    while (!over) {
      ::renameat2(AT_FDCWD, host.allowed.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
    }
  });
  const std::string path = (host.allowed / "file").string();
  int inside = 0;
  int reported = 0;
  bool only_harmless = true;
  for (int round = 0; round < 5'000 || ((inside == 0 || reported == 0) && round < 500'000); ++round) {
    const auto place = (*directories)->place(path, no_engine);
    if (!place) {
      ++reported;
      continue;
    }
    only_harmless = only_harmless && content_of(*place) == "harmless";
    ++inside;
  }
  over = true;
  container.join();
  CHECK(only_harmless);
  CHECK(inside > 0);
  CHECK(reported > 0);
}
