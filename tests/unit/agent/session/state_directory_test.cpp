#include "agent/session/state_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>

#include "support/temporary_directory.hpp"
#include "util/clock.hpp"

using namespace dockbridge;
using agent::Kept;
using agent::Meta;
using agent::Record;
using agent::StateDirectory;
using agent::Status;

namespace {

/// A state directory that is gone at the end of the test.
class World {
 public:
  [[nodiscard]] StateDirectory open() const {
    auto directory = StateDirectory::open(m_directory.path().string());
    REQUIRE(directory);
    return std::move(*directory);
  }
  void put(const std::string& name, const std::string& content = "x") const {
    std::ofstream(m_directory / name) << content;
  }
  void make_old(const std::string& name) const {
    const timespec long_ago{std::time(nullptr) - 10'000, 0};
    const std::array<timespec, 2> times = {long_ago, long_ago};
    REQUIRE(::utimensat(AT_FDCWD, (m_directory / name).c_str(), times.data(), 0) == 0);
  }
  [[nodiscard]] bool has(const std::string& name) const { return std::filesystem::exists(m_directory / name); }
  [[nodiscard]] std::string journal() const {
    for (const auto& entry : std::filesystem::directory_iterator(m_directory.path())) {
      if (entry.path().filename().string().starts_with("journal_")) {
        return entry.path().filename().string();
      }
    }
    return "";
  }

 private:
  test::TemporaryDirectory m_directory;
};

Meta meta(std::string command, std::int64_t started_at_ms = unix_milliseconds_now()) {
  return {std::move(command), "/", "local", "", started_at_ms};
}

/// A process that ended `age` ago.
void add_finished(StateDirectory& directory, const std::string& process, std::chrono::seconds age) {
  const std::int64_t when = unix_milliseconds_now() - milliseconds(age).count();
  const auto journal = directory.create(process, meta("true", when));
  REQUIRE(journal);
  REQUIRE(append(journal->get(), process, Kept{1, "keeper_1_1"}));
  REQUIRE(append(journal->get(), process, Status{wire::EndKind::exit, 0, wire::Cause::none, when, true}));
}

std::set<std::string> all_processes(const StateDirectory& directory) {
  std::set<std::string> found;
  directory.visit([&](const std::string& process, const Result<Record>& record) {
    CHECK(record);
    found.insert(process);
  });
  return found;
}

}  // namespace

TEST_CASE("a process is known as soon as it is made, also to another session") {
  const World world;
  StateDirectory one = world.open();
  const StateDirectory other = world.open();
  const auto journal = one.create("proc_1_a", meta("make"));
  REQUIRE(journal);
  REQUIRE(other.read("proc_1_a"));
  CHECK(other.read("proc_1_a")->meta.command == "make");
  REQUIRE(append(journal->get(), "proc_1_a", Kept{7, "keeper_7_7"}));
  CHECK(other.read("proc_1_a")->kept->pid == 7);
  CHECK(other.read("proc_1_b").error().code == "no_such_process");
}

TEST_CASE("no id is used twice, whoever comes first") {
  const World world;
  StateDirectory one = world.open();
  StateDirectory other = world.open();
  REQUIRE(one.create("proc_1_a", meta("first")));
  CHECK(one.create("proc_1_a", meta("again")).error().code == "process_exists");
  CHECK(other.create("proc_1_a", meta("again")).error().code == "process_exists");
  CHECK(other.read("proc_1_a")->meta.command == "first");
}

TEST_CASE("the processes of all sessions are visited, each once") {
  const World world;
  StateDirectory one = world.open();
  StateDirectory other = world.open();
  REQUIRE(one.create("proc_1_a", meta("a")));
  REQUIRE(one.create("proc_1_b", meta("b")));
  REQUIRE(other.create("proc_1_c", meta("c")));
  CHECK(all_processes(one) == std::set<std::string>{"proc_1_a", "proc_1_b", "proc_1_c"});
}

TEST_CASE("a journal that has grown is followed by another, and both are read") {
  const World world;
  StateDirectory directory = world.open();
  const std::string long_command(1000, 'x');
  std::set<ino_t> journals;
  for (int i = 0; i < 400; ++i) {
    const auto journal = directory.create("proc_1_" + std::to_string(i), meta(long_command));
    REQUIRE(journal);
    struct stat info {};
    REQUIRE(::fstat(journal->get(), &info) == 0);
    journals.insert(info.st_ino);
  }
  CHECK(journals.size() > 2);
  CHECK(all_processes(directory).size() == 400);
  CHECK(directory.read("proc_1_0")->meta.command == long_command);
  CHECK(directory.read("proc_1_399")->meta.command == long_command);
}

TEST_CASE("what a session made stays when it lets go of its journal") {
  const World world;
  {
    StateDirectory directory = world.open();
    REQUIRE(directory.create("proc_1_a", meta("make")));
    CHECK(world.journal() != "");
    directory.let_go_of_journal();
  }
  CHECK(world.journal() == "");
  CHECK(world.open().read("proc_1_a")->meta.command == "make");
}

TEST_CASE("old processes and those beyond the count are removed with their output, the oldest first") {
  const World world;
  StateDirectory directory = world.open();
  add_finished(directory, "proc_1_old", std::chrono::seconds(4000));
  add_finished(directory, "proc_1_a", std::chrono::seconds(300));
  add_finished(directory, "proc_1_b", std::chrono::seconds(200));
  add_finished(directory, "proc_1_c", std::chrono::seconds(100));
  for (const char* name : {"proc_1_old.out", "proc_1_a.err", "proc_1_c.out"}) {
    world.put(name);
  }
  directory.prune({std::chrono::seconds(3600), 2});
  CHECK(all_processes(directory) == std::set<std::string>{"proc_1_b", "proc_1_c"});
  CHECK_FALSE(world.has("proc_1_old.out"));
  CHECK_FALSE(world.has("proc_1_a.err"));
  CHECK(world.has("proc_1_c.out"));
  CHECK(directory.read("proc_1_old").error().code == "process_expired");
  CHECK(directory.read("proc_1_a").error().code == "process_expired");
  CHECK(directory.read("proc_1_ol").error().code == "no_such_process");
}

TEST_CASE("beyond the bytes of output that are kept, the oldest processes go first") {
  const World world;
  StateDirectory directory = world.open();
  int age = 0;
  for (const std::string process : {"proc_1_new", "proc_1_middle", "proc_1_old"}) {
    add_finished(directory, process, std::chrono::seconds(age += 100));
    world.put(process + ".out", std::string(100'000, 'x'));
  }
  directory.prune({std::chrono::seconds(3600), 1000, 250'000});
  CHECK(all_processes(directory) == std::set<std::string>{"proc_1_new", "proc_1_middle"});
  CHECK(directory.read("proc_1_old").error().code == "process_expired");
}

TEST_CASE("of very many expired processes the last are remembered") {
  const World world;
  StateDirectory directory = world.open();
  std::string last;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4000; ++i) {
      last = fmt::format("proc_1_{}x{:0>50}", round, i);
      add_finished(directory, last, std::chrono::seconds(4000));
    }
    directory.prune({});
  }
  CHECK(all_processes(directory).empty());
  CHECK(directory.read(last).error().code == "process_expired");
  CHECK(directory.read(fmt::format("proc_1_0x{:0>50}", 0)).error().code == "no_such_process");
}

TEST_CASE("a process whose keeper is gone without a word counts as finished") {
  const World world;
  StateDirectory directory = world.open();
  const auto journal = directory.create("proc_1_lost", meta("make", 1));
  REQUIRE(journal);
  REQUIRE(append(journal->get(), "proc_1_lost", Kept{7, "keeper_7_7"}));
  directory.prune({std::chrono::seconds(3600), 1000});
  CHECK(all_processes(directory).empty());
}

TEST_CASE("what killed sessions and keepers left behind is removed when it is old, and nothing else") {
  const World world;
  StateDirectory directory = world.open();
  add_finished(directory, "proc_1_a", std::chrono::seconds(1));
  for (const char* name : {"journal_1_1", "keeper_1_1", "proc_1_gone.out", "proc_1_a.out", "something.else"}) {
    world.put(name);
    world.make_old(name);
  }
  world.put("journal_2_2");
  directory.prune({});
  CHECK_FALSE(world.has("journal_1_1"));
  CHECK_FALSE(world.has("keeper_1_1"));
  CHECK_FALSE(world.has("proc_1_gone.out"));
  CHECK(world.has("proc_1_a.out"));
  CHECK(world.has("something.else"));
  CHECK(world.has("journal_2_2"));
}

TEST_CASE("a session whose journal was taken for a leftover goes on with another") {
  const World world;
  StateDirectory directory = world.open();
  REQUIRE(directory.create("proc_1_a", meta("before")));
  std::filesystem::remove(directory.path_of(world.journal()));
  REQUIRE(directory.create("proc_1_b", meta("after")));
  CHECK(directory.read("proc_1_a")->meta.command == "before");
  CHECK(directory.read("proc_1_b")->meta.command == "after");
}

TEST_CASE("a place that belongs to others is not used") {
  const World world;
  const std::string path = world.open().path();
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  CHECK(StateDirectory::open(path).error().code == "unsafe_directory");
}
