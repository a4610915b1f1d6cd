#include "agent/files/search/tree_walk.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "unit/agent/files/search/tree.hpp"

using namespace dockbridge;
using agent::FileType;
using agent::WalkEntry;
using agent::WalkOptions;
using test::Tree;

namespace {

std::map<std::string, FileType> walk(int start_fd, const WalkOptions& options = {}) {
  std::map<std::string, FileType> found;
  std::mutex mutex;
  agent::walk_tree(start_fd, options, 3, [&](const WalkEntry& entry) {
    const std::lock_guard lock(mutex);
    CHECK(found.emplace(entry.path, entry.type).second);
  });
  return found;
}

std::set<std::string> paths(int start_fd, const WalkOptions& options = {}) {
  std::set<std::string> found;
  for (const auto& [path, type] : walk(start_fd, options)) {
    found.insert(path);
  }
  return found;
}

using PathSet = std::set<std::string>;

/// A chain of directories, with `siblings` more directories on each level. On a tmpfs, because ext4 takes many seconds
/// to remove it.
class DeepTree {
 public:
  DeepTree(int levels, int siblings) {
    REQUIRE(::mkdtemp(m_path.data()) != nullptr);
    m_fd.reset(::open(m_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    Fd current(::openat(m_fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int level = 0; level < levels; ++level) {
      for (int i = 0; i < siblings; ++i) {
        REQUIRE(::mkdirat(current.get(), fmt::format("e{}", i).c_str(), 0700) == 0);
      }
      REQUIRE(::mkdirat(current.get(), "d", 0700) == 0);
      current.reset(::openat(current.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      REQUIRE(current);
    }
    const Fd file(::openat(current.get(), "bottom", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(file);
  }
  ~DeepTree() { CHECK(std::system(fmt::format("rm -rf '{}'", m_path).c_str()) == 0); }
  DeepTree(const DeepTree&) = delete;
  DeepTree& operator=(const DeepTree&) = delete;
  [[nodiscard]] int fd() const { return m_fd.get(); }

 private:
  std::string m_path = "/dev/shm/dockbridge-test.XXXXXX";
  Fd m_fd;
};

}  // namespace

TEST_CASE("tree walk: visits every entry once, with its type") {
  const Tree tree;
  tree.put("a");
  tree.put("b/c/d");
  tree.link("b", "to_directory");
  tree.link("nowhere", "dangling");
  REQUIRE(::mkfifo(tree.path("fifo").c_str(), 0600) == 0);
  const Fd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{AF_UNIX, {}};
  tree.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  CHECK(walk(tree.fd()) == std::map<std::string, FileType>{{"a", FileType::regular},
                                                           {"b", FileType::directory},
                                                           {"b/c", FileType::directory},
                                                           {"b/c/d", FileType::regular},
                                                           {"to_directory", FileType::symlink},
                                                           {"dangling", FileType::symlink},
                                                           {"fifo", FileType::fifo},
                                                           {"socket", FileType::socket}});
}

TEST_CASE("tree walk: accepts an O_PATH descriptor as its start") {
  const Tree tree;
  tree.put("a/b");
  const Fd start(::open(tree.path("").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  CHECK(paths(start.get()) == PathSet{"a", "a/b"});
}

TEST_CASE("tree walk: never follows links") {
  const Tree tree;
  tree.put("a/x");
  tree.link("..", "a/up");
  tree.link("loop", "loop");
  CHECK(paths(tree.fd()) == PathSet{"a", "a/x", "a/up", "loop"});
}

TEST_CASE("tree walk: names are any bytes, up to the longest name") {
  const Tree tree;
  const PathSet names = {"a\nb", "\xff\xfe", "-rf", " ", "'\"", std::string(255, 'n'), "*", "\\"};
  for (const std::string& name : names) {
    tree.put(name);
  }
  CHECK(paths(tree.fd()) == names);
}

TEST_CASE("tree walk: hidden, depth and globs select the entries") {
  const Tree tree;
  for (const char* path : {"a.c", "a.h", ".hidden", ".dir/x.c", "src/b.c", "src/deep/c.c", "out/d.c"}) {
    tree.put(path);
  }
  CHECK(paths(tree.fd()) == PathSet{"a.c", "a.h", "src", "src/b.c", "src/deep", "src/deep/c.c", "out", "out/d.c"});
  WalkOptions hidden;
  hidden.hidden = true;
  CHECK(paths(tree.fd(), hidden).size() == 11);
  WalkOptions shallow;
  shallow.max_depth = 1;
  CHECK(paths(tree.fd(), shallow) == PathSet{"a.c", "a.h", "src", "out"});
  shallow.max_depth = 2;
  CHECK(paths(tree.fd(), shallow) == PathSet{"a.c", "a.h", "src", "src/b.c", "src/deep", "out", "out/d.c"});
  WalkOptions chosen;
  chosen.include = *agent::Glob::compile_all({"*.c"});
  chosen.exclude = *agent::Glob::compile_all({"out", "src/deep/*"});
  CHECK(paths(tree.fd(), chosen) == PathSet{"a.c", "src", "src/b.c", "src/deep"});
  const auto totals = agent::walk_tree(tree.fd(), chosen, 1, [](const WalkEntry&) {});
  CHECK(totals.hidden == 2);
  CHECK(totals.excluded == 2);
  CHECK(totals.directories == 3);
}

TEST_CASE("tree walk: a huge directory is read in parts") {
  const Tree tree;
  for (int i = 0; i < 1500; ++i) {
    tree.put(fmt::format("file_with_a_long_name_{}", i), "");
  }
  tree.make_directory("z");
  tree.put(".gitignore", "file_with_a_long_name_4*\n");
  CHECK(paths(tree.fd()).size() == 1501 - 111);
}

TEST_CASE("tree walk: 5,000 levels need few descriptors") {
  const DeepTree chain(5000, 0);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{256, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::atomic<std::size_t> longest = 0;
  std::atomic<int> files = 0;
  const auto totals = agent::walk_tree(chain.fd(), {}, 3, [&](const WalkEntry& entry) {
    if (entry.type == FileType::regular) {
      ++files;
      longest = entry.path.size();
    }
  });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(totals.directories == 5001);
  CHECK(totals.unreadable == 0);
  CHECK(files == 1);
  CHECK(longest == 5000 * 2 + 6);
}

TEST_CASE("tree walk: a deep tree with branches needs few descriptors") {
  const DeepTree tree(1000, 2);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{256, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto totals = agent::walk_tree(tree.fd(), {}, 3, [](const WalkEntry&) {});
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(totals.directories == 3001);
  CHECK(totals.unreadable == 0);
}

TEST_CASE("tree walk: unreadable directories are counted and named") {
  const Tree tree;
  tree.put("open/a");
  tree.put("closed/b");
  REQUIRE(::chmod(tree.path("closed").c_str(), 0) == 0);
  REQUIRE(::chmod(tree.path("").c_str(), 0755) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Root can read everything.
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {
      ::_exit(2);
    }
    const auto totals = agent::walk_tree(tree.fd(), {}, 1, [](const WalkEntry&) {});
    const bool told = totals.unreadable == 1 && totals.unreadable_paths.size() == 1 &&
                      totals.unreadable_paths[0] == "closed: Permission denied" && totals.directories == 2;
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  REQUIRE(::chmod(tree.path("closed").c_str(), 0700) == 0);
}

TEST_CASE("tree walk: entries that vanish or become links are left out") {
  const Tree tree;
  tree.put("first");
  for (int i = 0; i < 50; ++i) {
    tree.put(fmt::format("d{}/x", i));
  }
  tree.put("outside/secret");
  std::atomic<bool> changed = false;
  std::atomic<int> inside = 0;
  // The only thread visits the files of the start before it opens the directories.
  const auto totals = agent::walk_tree(tree.fd(), {}, 1, [&](const WalkEntry& entry) {
    if (!changed.exchange(true)) {
      for (int i = 0; i < 50; ++i) {
        std::filesystem::remove_all(tree.path(fmt::format("d{}", i)));
        if (i % 2 == 0) {
          tree.link("outside", fmt::format("d{}", i));
        }
      }
    }
    inside += entry.path.starts_with("d") && entry.path.find('/') != std::string_view::npos ? 1 : 0;
  });
  CHECK(inside == 0);
  CHECK(totals.directories == 2);
  CHECK(totals.unreadable == 0);
}
