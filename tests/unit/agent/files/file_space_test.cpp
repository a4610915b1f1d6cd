#include "agent/files/file_space.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::FileSpace;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

FileSpace space_of(const fs::path& root) {
  auto space = FileSpace::open(root.string());
  REQUIRE(space);
  return std::move(*space);
}

const FileSpace& everything() {
  static const FileSpace space = space_of("");
  return space;
}

template <typename Value>
std::string code_of(const Result<Value>& result) {
  return result ? "" : std::string(name_of(result.error().code));
}

/// Creates a file at a place that a space returned.
std::string make_at(const FileSpace& space, const std::string& path, const std::string& content) {
  const auto place = space.place_for(path, true);
  if (!place) {
    return std::string(name_of(place.error().code));
  }
  const Fd file(::openat(place->directory.get(), place->name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file && ::write(file.get(), content.data(), content.size()) > 0 ? "" : "not made";
}

/// A directory `root`, and files beside it that must not be reachable from there.
struct Confined {
  test::TemporaryDirectory world;
  fs::path root = world / "root";
  fs::path secret = world / "secret";

  Confined() {
    fs::create_directory(root);
    fs::create_directory(secret);
    put(secret / "key", "secret");
    put(root / "file", "open");
  }
  [[nodiscard]] FileSpace space() const { return space_of(root); }
  [[nodiscard]] std::string at(const std::string& name) const { return (root / name).string(); }
};

}  // namespace

TEST_CASE("file space: finds files through links and dots, with their real path") {
  const test::TemporaryDirectory world;
  fs::create_directory(world / "a");
  put(world / "a" / "file", "x");
  fs::create_symlink("a", world / "link");
  for (const char* way : {"a/file", "a/./file", "a/../a/file", "link/file", "link//file"}) {
    CAPTURE(way);
    const auto found = everything().find((world / way).string());
    REQUIRE(found);
    CHECK(found->path == (world / "a" / "file").string());
    CHECK(found->is_regular());
  }
}

TEST_CASE("file space: empty, relative, too long and NUL paths are rejected") {
  CHECK(code_of(everything().find("")) == "bad_path");
  CHECK(code_of(everything().find("etc/passwd")) == "bad_path");
  CHECK(code_of(everything().find(std::string("/etc/pass\0wd", 12))) == "bad_path");
  CHECK(code_of(everything().find("/" + std::string(4999, 'a'))) == "path_too_long");
  CHECK(code_of(everything().find("/" + std::string(300, 'a'))) == "path_too_long");
  CHECK(code_of(everything().place_for("/" + std::string(4999, 'a'), true)) == "path_too_long");
}

TEST_CASE("file space: link loops and missing files have different errors") {
  const test::TemporaryDirectory world;
  fs::create_symlink("two", world / "one");
  fs::create_symlink("one", world / "two");
  fs::create_symlink("nowhere", world / "dangling");
  put(world / "file", "x");
  CHECK(code_of(everything().find((world / "one").string())) == "symlink_loop");
  CHECK(code_of(everything().find((world / "none").string())) == "no_such_file");
  const auto dangling = everything().find((world / "dangling").string());
  CHECK(code_of(dangling) == "no_such_file");
  CHECK(dangling.error().message == "Target of the symbolic link is missing: " + (world / "dangling").string());
  CHECK(everything().find((world / "none").string()).error().message.starts_with("No such file or directory: "));
  CHECK(code_of(everything().place_for((world / "dangling").string(), true)) == "dangling_link");
  CHECK(code_of(everything().find((world / "file/below").string())) == "not_a_directory");
  CHECK(code_of(everything().place_for((world / "file/below").string(), true)) == "not_a_directory");
}

TEST_CASE("file error: another user is suggested only if the agent is not root") {
  const std::string sentence = agent::file_error("/proc/x", EACCES).sentence();
  CHECK((sentence.find("user: root") == std::string::npos) == (::geteuid() == 0));
}

TEST_CASE("file space: pipes, sockets and devices are found without opening them") {
  const test::TemporaryDirectory world;
  const std::string pipe = (world / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    const auto found = everything().find(path);
    REQUIRE(found);
    CHECK(!found->is_regular());
    CHECK(!found->is_directory());
  }
}

TEST_CASE("file space: missing directories of a new file are created on request") {
  const test::TemporaryDirectory world;
  CHECK(code_of(everything().place_for((world / "a/b/file").string(), false)) == "no_such_file");
  CHECK(!fs::exists(world / "a"));
  const auto place = everything().place_for((world / "a/./b//c/file").string(), true);
  REQUIRE(place);
  CHECK(place->name == "file");
  CHECK(place->path == (world / "a/b/c/file").string());
  CHECK(fs::is_directory(world / "a/b/c"));
}

TEST_CASE("file space: a directory's path is rejected for a file") {
  const test::TemporaryDirectory world;
  for (const char* end : {"new/", "new/.", "new/..", "."}) {
    CAPTURE(end);
    CHECK(code_of(everything().place_for((world / end).string(), true)) == "is_a_directory");
  }
  CHECK(fs::is_empty(world.path()));
}

TEST_CASE("file space: '..' after a missing directory creates nothing") {
  const test::TemporaryDirectory world;
  CHECK(code_of(everything().place_for(world.path().string() + "/none/../file", true)) == "no_such_file");
  CHECK(fs::is_empty(world.path()));
}

TEST_CASE("file space: a file 1,000 directories deep is created and found") {
  const test::TemporaryDirectory world;
  std::string path = world.path().string();
  for (int i = 0; i < 1000; ++i) {
    path += "/d";
  }
  path += "/file";
  CHECK(make_at(everything(), path, "deep") == "");
  CHECK(everything().find(path));
}

TEST_CASE("file space: a file that was replaced after its lookup is rejected") {
  const test::TemporaryDirectory world;
  put(world / "file", "old");
  const auto found = everything().find((world / "file").string());
  put(world / "other", "new");
  fs::rename(world / "other", world / "file");
  REQUIRE(found);
  CHECK(code_of(everything().place_of(*found)) == "file_changed");
}

TEST_CASE("file space: a root accepts its own path and its real path") {
  const Confined confined;
  fs::create_directory(confined.root / "sub");
  fs::create_symlink("../file", confined.root / "sub" / "up");
  fs::create_symlink(confined.root, confined.world / "alias");
  const FileSpace by_alias = space_of(confined.world / "alias");
  CHECK(by_alias.find((confined.world / "alias/file").string()));
  CHECK(by_alias.find(confined.at("file")));
  const FileSpace space = confined.space();
  CHECK(space.find(confined.at("sub/up")));
  CHECK(space.find(confined.root.string())->is_directory());
  CHECK(space.find(confined.root.string() + "/")->is_directory());
  CHECK(space.find(confined.at("sub/../file")));
  const auto file = space.find(confined.at("sub/up"));
  const auto place = space.place_of(*file);
  REQUIRE(place);
  CHECK(place->path == confined.at("file"));
}

TEST_CASE("file space: no path leaves the root") {
  const Confined confined;
  fs::create_symlink(confined.secret, confined.root / "absolute");
  fs::create_symlink("../secret", confined.root / "relative");
  fs::create_symlink("/proc/self/root", confined.root / "magic");
  fs::create_directory(confined.world / "root-beside");
  put(confined.world / "root-beside" / "key", "secret");
  const FileSpace space = confined.space();
  const std::string from = confined.root.string();
  for (const std::string& path :
       {std::string("/etc/passwd"), confined.world.path().string(), from + "/../secret/key", from + "/..",
        from + "/sub/../../secret/key", from + "/absolute/key", from + "/relative/key", from + "/absolute",
        from + "-beside/key", from + "/magic" + confined.secret.string() + "/key"}) {
    CAPTURE(path);
    CHECK(!space.find(path));
    CHECK(!space.place_for(path, true));
  }
  CHECK(code_of(space.find(from + "/absolute/key")) == "outside_root");
  CHECK(code_of(space.find("/etc/passwd")) == "outside_root");
  CHECK(make_at(space, from + "/relative/planted", "x") == "outside_root");
  CHECK(make_at(space, from + "/relative/new/planted", "x") != "");
  CHECK(!fs::exists(confined.secret / "planted"));
  CHECK(!fs::exists(confined.secret / "new"));
}

TEST_CASE("file space: a directory swapped for a link does not leave the root") {
  const Confined confined;
  const FileSpace space = confined.space();
  fs::create_directory(confined.root / "dir");
  put(confined.root / "dir" / "key", "harmless");
  fs::create_symlink(confined.secret, confined.root / "link");
  std::atomic<bool> over = false;
  std::thread attacker([&] {
    const std::string dir = confined.at("dir");
    const std::string link = confined.at("link");
    while (!over) {
      ::renameat2(AT_FDCWD, dir.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
    }
  });
  int found_inside = 0;
  int refused = 0;
  for (int round = 0; round < 20'000 || ((found_inside == 0 || refused == 0) && round < 2'000'000); ++round) {
    const auto found = space.find(confined.at("dir/key"));
    const auto fd = found ? found->open_for_reading() : fail(found.error());
    if (fd) {
      std::string bytes(8, '\0');
      REQUIRE(::read(fd->get(), bytes.data(), bytes.size()) == 8);
      REQUIRE(bytes == "harmless");
      ++found_inside;
    } else {
      ++refused;
    }
    if (round % 100 == 0) {
      (void)make_at(space, confined.at("dir/sub" + std::to_string(round) + "/planted"), "x");
      (void)make_at(space, confined.at("dir/planted" + std::to_string(round)), "x");
    }
  }
  over = true;
  attacker.join();
  CHECK(found_inside > 0);
  CHECK(refused > 0);
  CHECK(content_of(confined.secret / "key") == "secret");
  CHECK(std::distance(fs::directory_iterator(confined.secret), {}) == 1);
}

TEST_CASE("file space: an absolute link to a target beneath the root is followed") {
  const Confined confined;
  fs::create_directories(confined.root / "sub" / "deep");
  put(confined.root / "sub" / "deep" / "key", "inside");
  fs::create_symlink(confined.root / "sub", confined.root / "dir");
  fs::create_symlink(confined.root / "dir" / "deep", confined.root / "sub" / "chain");
  fs::create_symlink(confined.root / "sub" / "deep" / "key", confined.root / "leaf");
  fs::create_symlink(confined.root, confined.root / "self");
  fs::create_symlink(confined.root.string() + "//./sub/../sub/", confined.root / "untidy");
  fs::create_symlink("dir/chain/../../leaf", confined.root / "mixed");
  fs::create_symlink(confined.root / "none", confined.root / "dangling");
  const FileSpace space = confined.space();
  for (const char* way : {"dir/deep/key", "sub/chain/key", "dir/chain/key", "leaf", "self/leaf",
                          "self/self/dir/deep/key", "untidy/deep/key", "mixed", "dir/../leaf", "self/../root/leaf"}) {
    CAPTURE(way);
    const auto found = space.find(confined.at(way));
    const bool leaves = std::string_view(way).starts_with("self/..");
    CHECK(code_of(found) == (leaves ? "outside_root" : ""));
    if (found) {
      CHECK(found->path == confined.at("sub/deep/key"));
      CHECK(space.place_of(*found)->path == confined.at("sub/deep/key"));
    }
  }
  CHECK(code_of(space.find(confined.at("leaf/below"))) == "not_a_directory");
  CHECK(code_of(space.find(confined.at("dir/none"))) == "no_such_file");
  CHECK(space.find(confined.at("dangling")).error().message.starts_with("Target of the symbolic link is missing: "));
  CHECK(code_of(space.place_for(confined.at("dangling"), true)) == "dangling_link");
  CHECK(make_at(space, confined.at("dir/new/made"), "x") == "");
  CHECK(content_of(confined.root / "sub/new/made") == "x");
}

TEST_CASE("file space: at most 40 absolute links are followed, none out of the root") {
  const Confined confined;
  const auto chain = [&](const std::string& name, int links, const fs::path& to) {
    fs::path target = to;
    for (int i = links; i-- > 0;) {
      const fs::path link = confined.root / (name + std::to_string(i));
      fs::create_symlink(target, link);
      target = link;
    }
  };
  chain("good", 40, confined.root / "file");
  chain("long", 41, confined.root / "file");
  fs::create_symlink(confined.root / "circle", confined.root / "circle");
  fs::create_symlink(confined.root / "../secret/key", confined.root / "up");
  fs::create_symlink(confined.root.string() + "-beside", confined.root / "beside");
  fs::create_symlink(confined.secret, confined.root / "out");
  fs::create_symlink(confined.root / "out" / "key", confined.root / "twice");
  fs::create_symlink("/", confined.root / "top");
  const FileSpace space = confined.space();
  CHECK(space.find(confined.at("good0")));
  CHECK(code_of(space.find(confined.at("long0"))) == "symlink_loop");
  CHECK(code_of(space.find(confined.at("circle"))) == "symlink_loop");
  for (const std::string& way : {std::string("up"), std::string("beside"), std::string("twice"), std::string("out/key"),
                                 "top" + confined.at("file")}) {
    CAPTURE(way);
    CHECK(code_of(space.find(confined.at(way))) == "outside_root");
  }
}

TEST_CASE("file space: nothing is above the root that an absolute link leads to") {
  const Confined confined;
  fs::create_directory(confined.root / "sub");
  fs::create_symlink(confined.root, confined.root / "sub" / "top");
  fs::create_symlink(confined.root / "file", confined.root / "leaf");
  const FileSpace space = confined.space();
  CHECK(space.find(confined.at("sub/top/file")));
  CHECK(code_of(space.find(confined.at("sub/top/.."))) == "outside_root");
  CHECK(code_of(space.find(confined.at("sub/top/../file"))) == "outside_root");
  CHECK(code_of(space.place_for(confined.at("leaf/below"), true)) == "not_a_directory");
}

TEST_CASE("file space: a directory moved out of the root takes no '..' with it") {
  const Confined confined;
  const FileSpace space = confined.space();
  fs::create_directories(confined.root / "dir" / "sub");
  fs::create_directory(confined.secret / "sub");
  put(confined.root / "dir" / "key", "harmless");
  fs::create_symlink(confined.root / "dir", confined.root / "link");
  const std::jthread attacker([&](const std::stop_token& stop) {
    const std::string inside = confined.at("dir/sub");
    const std::string outside = (confined.secret / "sub").string();
    while (!stop.stop_requested()) {
      ::renameat2(AT_FDCWD, inside.c_str(), AT_FDCWD, outside.c_str(), RENAME_EXCHANGE);
    }
  });
  int found_inside = 0;
  for (int round = 0; round < 20'000 || (found_inside == 0 && round < 2'000'000); ++round) {
    if (const auto found = space.find(confined.at("link/sub/../key"))) {
      REQUIRE(found->path == confined.at("dir/key"));
      ++found_inside;
    }
  }
  CHECK(found_inside > 0);
}

TEST_CASE("file space: swapped absolute links never lead out of the root") {
  const Confined confined;
  const FileSpace space = confined.space();
  fs::create_directories(confined.root / "dir" / "sub");
  put(confined.root / "dir" / "key", "harmless");
  put(confined.root / "dir" / "sub" / "key", "harmless");
  fs::create_symlink(confined.root / "dir", confined.root / "link");      // target inside
  fs::create_symlink(confined.secret, confined.root / "bad");             // target outside
  fs::create_symlink(confined.secret, confined.root / "dir" / "badsub");  // to be swapped for a directory
  std::atomic<bool> over = false;
  std::thread attacker([&] {
    const std::string link = confined.at("link");
    const std::string bad = confined.at("bad");
    const std::string sub = confined.at("dir/sub");
    const std::string badsub = confined.at("dir/badsub");
    while (!over) {
      ::renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, bad.c_str(), RENAME_EXCHANGE);
      ::renameat2(AT_FDCWD, sub.c_str(), AT_FDCWD, badsub.c_str(), RENAME_EXCHANGE);
    }
  });
  int found_inside = 0;
  int refused = 0;
  for (int round = 0; round < 20'000 || ((found_inside == 0 || refused == 0) && round < 2'000'000); ++round) {
    const auto found = space.find(confined.at(round % 2 == 0 ? "link/key" : "link/sub/../sub/key"));
    const auto fd = found ? found->open_for_reading() : fail(found.error());
    if (fd) {
      std::string bytes(8, '\0');
      REQUIRE(::read(fd->get(), bytes.data(), bytes.size()) == 8);
      REQUIRE(bytes == "harmless");
      ++found_inside;
    } else {
      ++refused;
    }
    if (round % 100 == 0) {
      (void)make_at(space, confined.at("link/planted" + std::to_string(round)), "x");
    }
  }
  over = true;
  attacker.join();
  CHECK(found_inside > 0);
  CHECK(refused > 0);
  CHECK(std::distance(fs::directory_iterator(confined.secret), {}) == 1);
}

TEST_CASE("file space: a missing root, or one that is a file, is an error") {
  const Confined confined;
  CHECK(code_of(FileSpace::open(confined.at("none"))) == "no_such_file");
  CHECK(code_of(FileSpace::open(confined.at("file"))) == "not_a_directory");
}

TEST_CASE("file errors: every message is one printable line") {
  for (int number = 1; number < 134; ++number) {
    const Error error = agent::file_error("/a\nb\x1b[31m/" + std::string(5000, 'x'), number);
    CAPTURE(number);
    CHECK(error.message.size() < 1000);
    CHECK(error.message.find('\n') == std::string::npos);
    CHECK(error.message.find('\x1b') == std::string::npos);
  }
}
