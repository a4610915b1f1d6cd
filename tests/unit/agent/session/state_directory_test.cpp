#include "agent/session/state_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/session/pruner.hpp"
#include "agent/spool.hpp"
#include "support/temporary_directory.hpp"
#include "unit/agent/fake_keeper.hpp"
#include "util/clock.hpp"

using namespace dockbridge;
using agent::Kept;
using agent::Meta;
using agent::Moment;
using agent::Order;
using agent::Pruner;
using agent::Record;
using agent::StateDirectory;
using agent::Status;
using test::FakeKeeper;

namespace {

/// The time in these tests.
const Moment k_now{1'700'000'000'000, 90'000'000, "b007"};

/// A temporary state directory.
class DirectoryWorld {
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
    const timespec long_ago{k_now.unix_ms / 1000 - 10'000, 0};
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

Moment ago(std::chrono::seconds age) {
  const auto span = milliseconds(age).count();
  return {k_now.unix_ms - span, k_now.uptime_ms - span, k_now.boot};
}

Meta meta(std::string command, const Moment& started = k_now) {
  return {std::move(command), "/", "local", "", started};
}

void add_finished(StateDirectory& directory, const std::string& process, const Moment& when) {
  const auto journal = directory.create(process, meta("true", when));
  REQUIRE(journal);
  REQUIRE(append(journal->get(), process, Kept{1, "keeper_1_1"}));
  REQUIRE(append(journal->get(), process, Status{wire::EndKind::exit, 0, wire::Cause::none, when, true}));
}

/// A process that ended `age` ago.
void add_finished(StateDirectory& directory, const std::string& process, std::chrono::seconds age) {
  add_finished(directory, process, ago(age));
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

TEST_CASE("state directory: a new process is visible to other sessions") {
  const DirectoryWorld world;
  StateDirectory one = world.open();
  const StateDirectory other = world.open();
  const auto journal = one.create("proc_1_a", meta("make"));
  REQUIRE(journal);
  REQUIRE(other.read("proc_1_a"));
  CHECK(other.read("proc_1_a")->meta.command == "make");
  REQUIRE(append(journal->get(), "proc_1_a", Kept{7, "keeper_7_7"}));
  CHECK(other.read("proc_1_a")->kept->pid == 7);
  CHECK(other.read("proc_1_b").error().code == ErrorCode::no_such_process);
}

TEST_CASE("state directory: no id is used twice") {
  const DirectoryWorld world;
  StateDirectory one = world.open();
  StateDirectory other = world.open();
  REQUIRE(one.create("proc_1_a", meta("first")));
  CHECK(one.create("proc_1_a", meta("again")).error().code == ErrorCode::process_exists);
  CHECK(other.create("proc_1_a", meta("again")).error().code == ErrorCode::process_exists);
  CHECK(other.read("proc_1_a")->meta.command == "first");
}

TEST_CASE("state directory: a process of another run is found by the end of its id") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  CHECK_FALSE(directory.namesake("proc_1_abc"));
  add_finished(directory, "proc_1_abc", std::chrono::seconds(20));
  add_finished(directory, "proc_1_xabc", std::chrono::seconds(20));
  world.put("proc_3_def.out");
  CHECK(directory.namesake("proc_1_abc") == "proc_1_abc");
  CHECK(directory.namesake("proc_22_abc") == "proc_1_abc");
  CHECK_FALSE(directory.namesake("proc_22_bc"));
  CHECK_FALSE(directory.namesake("proc_22_def"));

  add_finished(directory, "proc_1_last", std::chrono::seconds(20));
  Pruner(directory, {.age = std::chrono::seconds(10), .count = 100, .bytes = 1 << 20}).prune(k_now);
  REQUIRE_FALSE(world.has("proc_1_abc"));
  for (const std::string ending : {"abc", "xabc", "last"}) {
    CHECK(directory.namesake("proc_22_" + ending) == "proc_1_" + ending);
  }
  CHECK_FALSE(directory.namesake("proc_22_bc"));
}

TEST_CASE("state directory: processes of all sessions are visited once") {
  const DirectoryWorld world;
  StateDirectory one = world.open();
  StateDirectory other = world.open();
  REQUIRE(one.create("proc_1_a", meta("a")));
  REQUIRE(one.create("proc_1_b", meta("b")));
  REQUIRE(other.create("proc_1_c", meta("c")));
  CHECK(all_processes(one) == std::set<std::string>{"proc_1_a", "proc_1_b", "proc_1_c"});
}

TEST_CASE("state directory: a full journal is followed by another") {
  const DirectoryWorld world;
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

TEST_CASE("state directory: records remain after the journal is released") {
  const DirectoryWorld world;
  {
    StateDirectory directory = world.open();
    REQUIRE(directory.create("proc_1_a", meta("make")));
    CHECK(world.journal() != "");
    directory.release_journal();
  }
  CHECK(world.journal() == "");
  CHECK(world.open().read("proc_1_a")->meta.command == "make");
}

TEST_CASE("pruner: processes beyond the age or count are removed with their output") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  add_finished(directory, "proc_1_old", std::chrono::seconds(4000));
  add_finished(directory, "proc_1_a", std::chrono::seconds(300));
  add_finished(directory, "proc_1_b", std::chrono::seconds(200));
  add_finished(directory, "proc_1_c", std::chrono::seconds(100));
  for (const char* name : {"proc_1_old.out", "proc_1_a.err", "proc_1_c.out"}) {
    world.put(name);
  }
  Pruner(directory, {std::chrono::seconds(3600), 2}).prune(k_now);
  CHECK(all_processes(directory) == std::set<std::string>{"proc_1_b", "proc_1_c"});
  CHECK_FALSE(world.has("proc_1_old.out"));
  CHECK_FALSE(world.has("proc_1_a.err"));
  CHECK(world.has("proc_1_c.out"));
  CHECK(directory.read("proc_1_old").error().code == ErrorCode::process_expired);
  CHECK(directory.read("proc_1_a").error().code == ErrorCode::process_expired);
  CHECK(directory.read("proc_1_ol").error().code == ErrorCode::no_such_process);
}

TEST_CASE("pruner: a wall clock that jumps has no effect on expiry") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  add_finished(directory, "proc_1_a", std::chrono::seconds(10));
  Moment later = k_now;
  for (const std::int64_t jump : {86'400'000L, -86'400'000L, -1'700'000'000'000L}) {
    later.unix_ms = k_now.unix_ms + jump;
    Pruner(directory, {}).prune(later);
    CHECK(all_processes(directory) == std::set<std::string>{"proc_1_a"});
  }
  add_finished(directory, "proc_1_b", Moment{later.unix_ms, later.uptime_ms, later.boot});
  Pruner(directory, {std::chrono::seconds(3600), 1}).prune(later);
  CHECK(all_processes(directory) == std::set<std::string>{"proc_1_b"});  // although the other has a later wall clock
  later.uptime_ms += 4'000'000;
  Pruner(directory, {}).prune(later);
  CHECK(all_processes(directory).empty());
}

TEST_CASE("pruner: the age of a lost process counts from its last output") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  const Moment started{k_now.unix_ms, uptime_milliseconds_now() - 18'000'000, k_now.boot};
  const auto journal = directory.create("proc_1_lost", meta("make", started));
  REQUIRE(journal);
  REQUIRE(append(journal->get(), "proc_1_lost", Kept{7, "keeper_7_7"}));
  agent::SpoolWriter(directory.fd(), "proc_1_lost.out", {}).append("words");
  const Moment printed{0, uptime_milliseconds_now(), k_now.boot};
  const auto prune_after = [&](std::chrono::seconds span) {
    Pruner(directory, {}).prune({k_now.unix_ms * 2, printed.uptime_ms + milliseconds(span).count(), k_now.boot});
    return all_processes(directory).size();
  };
  CHECK(prune_after(std::chrono::seconds(3500)) == 1);
  CHECK(prune_after(std::chrono::seconds(3700)) == 0);
}

TEST_CASE("pruner: without a boot id in common, the wall clock counts") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  add_finished(directory, "proc_1_a", Moment{k_now.unix_ms - 100'000, k_now.uptime_ms - 9'000'000, "other"});
  add_finished(directory, "proc_1_b", Moment{k_now.unix_ms - 100'000, 0, ""});
  add_finished(directory, "proc_1_c", Moment{k_now.unix_ms - 9'000'000, k_now.uptime_ms - 100'000, "other"});
  Pruner(directory, {}).prune(k_now);
  CHECK(all_processes(directory) == std::set<std::string>{"proc_1_a", "proc_1_b"});
}

TEST_CASE("pruner: above the limit of bytes, the oldest processes are removed") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  int age = 0;
  for (const std::string process : {"proc_1_new", "proc_1_middle", "proc_1_old"}) {
    add_finished(directory, process, std::chrono::seconds(age += 100));
    world.put(process + ".out", std::string(100'000, 'x'));
  }
  Pruner(directory, {std::chrono::seconds(3600), 1000, 250'000}).prune(k_now);
  CHECK(all_processes(directory) == std::set<std::string>{"proc_1_new", "proc_1_middle"});
  CHECK(directory.read("proc_1_old").error().code == ErrorCode::process_expired);
}

TEST_CASE("pruner: finished processes are removed before running ones are trimmed") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  const FakeKeeper keeper(directory.fd(), "keeper_7_7");
  for (const std::string process : {"proc_1_large", "proc_1_small"}) {
    const auto journal = directory.create(process, meta("make"));
    REQUIRE(journal);
    REQUIRE(append(journal->get(), process, Kept{7, keeper.name()}));
  }
  world.put("proc_1_large.out", std::string(300'000, 'x'));
  world.put("proc_1_small.out", std::string(10'000, 'x'));
  add_finished(directory, "proc_1_done", std::chrono::seconds(1));
  world.put("proc_1_done.out", std::string(100'000, 'x'));
  const std::set<std::string> running = {"proc_1_large", "proc_1_small"};

  Pruner(directory, {std::chrono::seconds(3600), 1000, 350'000}).prune(k_now);
  CHECK(all_processes(directory) == running);
  CHECK(directory.read("proc_1_done").error().code == ErrorCode::process_expired);
  CHECK(keeper.heard(Order::trim).empty());

  Pruner(directory, {std::chrono::seconds(3600), 1000, 200'000}).prune(k_now);
  CHECK(all_processes(directory) == running);
  const auto trims = keeper.heard(Order::trim);
  REQUIRE(trims.size() == 1);
  CHECK(trims[0].process == "proc_1_large");
  CHECK(trims[0].packet.header.value == 100'000);
}

TEST_CASE("pruner: the latest expired ids are remembered, up to a limit") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  std::string last;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4000; ++i) {
      last = fmt::format("proc_1_{}x{:0>50}", round, i);
      add_finished(directory, last, std::chrono::seconds(4000));
    }
    Pruner(directory, {}).prune(k_now);
  }
  CHECK(all_processes(directory).empty());
  CHECK(directory.read(last).error().code == ErrorCode::process_expired);
  CHECK(directory.read(fmt::format("proc_1_0x{:0>50}", 0)).error().code == ErrorCode::no_such_process);
}

TEST_CASE("pruner: a process whose keeper was killed counts as finished") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  const auto journal = directory.create("proc_1_lost", meta("make", ago(std::chrono::hours(2))));
  REQUIRE(journal);
  REQUIRE(append(journal->get(), "proc_1_lost", Kept{7, "keeper_7_7"}));
  Pruner(directory, {std::chrono::seconds(3600), 1000}).prune(k_now);
  CHECK(all_processes(directory).empty());
}

TEST_CASE("pruner: only old leftovers of killed sessions and keepers are removed") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  add_finished(directory, "proc_1_a", std::chrono::seconds(1));
  for (const char* name : {"journal_1_1", "keeper_1_1", "proc_1_gone.out", "proc_1_a.out", "something.else"}) {
    world.put(name);
    world.make_old(name);
  }
  world.put("journal_2_2");
  Pruner(directory, {}).prune(k_now);
  CHECK_FALSE(world.has("journal_1_1"));
  CHECK_FALSE(world.has("keeper_1_1"));
  CHECK_FALSE(world.has("proc_1_gone.out"));
  CHECK(world.has("proc_1_a.out"));
  CHECK(world.has("something.else"));
  CHECK(world.has("journal_2_2"));
}

TEST_CASE("state directory: a session whose journal was removed creates another") {
  const DirectoryWorld world;
  StateDirectory directory = world.open();
  REQUIRE(directory.create("proc_1_a", meta("before")));
  std::filesystem::remove(directory.path_of(world.journal()));
  REQUIRE(directory.create("proc_1_b", meta("after")));
  CHECK(directory.read("proc_1_a")->meta.command == "before");
  CHECK(directory.read("proc_1_b")->meta.command == "after");
}

TEST_CASE("state directory: a directory that others can read is not used") {
  const DirectoryWorld world;
  const std::string path = world.open().path();
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  CHECK(StateDirectory::open(path).error().code == ErrorCode::unsafe_directory);
}

TEST_CASE("state directory: a parent that another user can change is not used") {
  const test::TemporaryDirectory root;
  const std::string path = root / "parent/state";
  const auto code = [&] {
    const auto opened = StateDirectory::open(path);
    return opened ? "success" : std::string(name_of(opened.error().code));
  };
  REQUIRE(::mkdir((root / "parent").c_str(), 0755) == 0);
  CHECK(code() == "success");
  for (const auto& [mode, expected] : {std::pair{0777, "unsafe_directory"},
                                       {0775, "unsafe_directory"},
                                       {01777, "success"},
                                       {01775, "success"},
                                       {0755, "success"}}) {
    CAPTURE(mode);
    REQUIRE(::chmod((root / "parent").c_str(), static_cast<mode_t>(mode)) == 0);
    CHECK(code() == expected);
    REQUIRE(::chmod((root / "parent").c_str(), 0755) == 0);
    REQUIRE(::chmod(root.path().c_str(), static_cast<mode_t>(mode)) == 0);
    CHECK(code() == expected);
    REQUIRE(::chmod(root.path().c_str(), 0755) == 0);
  }
  std::filesystem::rename(root / "parent", root / "elsewhere");
  std::filesystem::create_directory_symlink("elsewhere", root / "parent");
  CHECK(code() == "io_error");
}
