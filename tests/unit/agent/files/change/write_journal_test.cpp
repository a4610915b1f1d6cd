#include "agent/files/change/write_journal.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "agent/files/revision.hpp"
#include "support/failing_call.hpp"
#include "support/temporary_directory.hpp"
#include "util/clock.hpp"

using namespace dockbridge;
using agent::ContentStore;
using agent::revision_of;
using agent::WriteJournal;
namespace fs = std::filesystem;

namespace {

constexpr const char* k_temporary = ".dockbridge-0123456789abcdef.tmp";

struct JournalWorld {
  test::TemporaryDirectory state;
  test::TemporaryDirectory work;

  void put(const std::string& name, const std::string& content) const {
    std::ofstream(work / name, std::ios::binary) << content;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(work / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (work / name).string(); }
  [[nodiscard]] ContentStore store() const {
    auto opened = ContentStore::open(state.fd());
    REQUIRE(opened);
    return std::move(*opened);
  }
  /// Recovers like the next process.
  void recover() const {
    ContentStore opened = store();
    WriteJournal::recover(state.fd(), opened);
  }
  [[nodiscard]] int journals() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(state.path())) {
      count += entry.path().filename().string().starts_with("writing_") ? 1 : 0;
    }
    return count;
  }
  /// Runs it in a process that is killed right after it.
  void do_and_die(const std::function<void(WriteJournal& journal)>& act) const {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      auto journal = WriteJournal::open(state.fd());
      if (journal) {
        act(*journal);
      }
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFSIGNALED(status));
  }
};

}  // namespace

TEST_CASE("journal: a temporary file of a killed process is removed") {
  const JournalWorld world;
  world.put(k_temporary, "half");
  world.put("file", "whole");
  world.do_and_die([&](WriteJournal& journal) { (void)journal.begin_temporary(world.at(k_temporary)); });
  CHECK(WriteJournal::has_leftovers(world.state.fd()));
  world.recover();
  CHECK(!fs::exists(world.work / k_temporary));
  CHECK(world.content("file") == "whole");
  CHECK(!WriteJournal::has_leftovers(world.state.fd()));
  CHECK(world.journals() == 0);
}

TEST_CASE("journal: an entry of a live process is left alone") {
  const JournalWorld world;
  world.put(k_temporary, "half");
  auto journal = WriteJournal::open(world.state.fd());
  REQUIRE(journal);
  REQUIRE(journal->begin_temporary(world.at(k_temporary)));
  CHECK(!WriteJournal::has_leftovers(world.state.fd()));
  world.recover();
  CHECK(fs::exists(world.work / k_temporary));
  CHECK(world.journals() == 1);
}

TEST_CASE("journal: recovery waits for a dying process that still holds its lock") {
  const JournalWorld world;
  {
    ContentStore store = world.store();
    REQUIRE(store.put(revision_of("old"), "old"));
    REQUIRE(store.put(revision_of("new"), "new"));
  }
  world.put("file", "new");
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    auto journal = WriteJournal::open(world.state.fd());
    const agent::SetEntry entry{world.at("file"), revision_of("old"), revision_of("new")};
    if (journal && journal->begin_set({&entry, 1})) {
      ::usleep(300'000);
    }
    ::kill(::getpid(), SIGKILL);
  }
  const auto deadline = Deadline::after(seconds(10));
  while (!WriteJournal::is_change_under_way(world.state.fd()) && !deadline.passed()) {
    ::usleep(1000);
  }
  CHECK(!WriteJournal::has_leftovers(world.state.fd()));
  world.recover();
  CHECK(world.content("file") == "old");
  CHECK(world.journals() == 0);
  REQUIRE(::waitpid(pid, nullptr, 0) == pid);
}

TEST_CASE("journal: a finished entry changes nothing, and the file ends with its owner") {
  const JournalWorld world;
  world.put(k_temporary, "somebody else's");
  {
    auto journal = WriteJournal::open(world.state.fd());
    REQUIRE(journal);
    REQUIRE(journal->begin_temporary(world.at(k_temporary)));
    journal->done();
  }
  CHECK(world.journals() == 0);
  world.do_and_die([&](WriteJournal& journal) {
    (void)journal.begin_temporary(world.at(k_temporary));
    journal.done();
  });
  world.recover();
  CHECK(fs::exists(world.work / k_temporary));
  CHECK(world.journals() == 0);
}

TEST_CASE("journal: only names of temporary files are removed") {
  const JournalWorld world;
  world.put("precious", "x");
  world.do_and_die([&](WriteJournal& journal) { (void)journal.begin_temporary(world.at("precious")); });
  world.recover();
  CHECK(fs::exists(world.work / "precious"));
}

TEST_CASE("journal: a file partly written in place is restored") {
  const JournalWorld world;
  const std::string before = "the old content, which is longer";
  const std::string after = "THE NEW";
  ContentStore store = world.store();
  REQUIRE(store.put(revision_of(before), before));
  REQUIRE(store.put(revision_of(after), after));
  for (const std::string& half :
       {std::string("THE old content, which is longer"), std::string("THE NEW content, which is longer"), before}) {
    world.put("file", half);
    world.do_and_die([&](WriteJournal& journal) {
      (void)journal.begin_in_place(world.at("file"), revision_of(before), revision_of(after));
    });
    world.recover();
    CHECK(world.content("file") == before);
  }
}

TEST_CASE("journal: a partly restored file is restored") {
  const JournalWorld world;
  const std::string before = "the old content";
  const std::string after = "THE NEW CONTENT, WHICH IS LONGER";
  ContentStore store = world.store();
  REQUIRE(store.put(revision_of(before), before));
  REQUIRE(store.put(revision_of(after), after));
  for (const std::string& half :
       {std::string("the NEW content"), std::string("the old CONTENT, WH"), std::string("the old content, WHICH"),
        std::string("the old content, WHICH IS LONGER")}) {
    CAPTURE(half);
    world.put("file", half);
    world.do_and_die([&](WriteJournal& journal) {
      (void)journal.begin_in_place(world.at("file"), revision_of(before), revision_of(after));
    });
    world.recover();
    CHECK(world.content("file") == before);
  }
}

TEST_CASE("journal: the next process restores what cannot be restored now") {
  const JournalWorld world;
  const std::string before(10'000, 'o');
  const std::string after(20'000, 'n');
  ContentStore store = world.store();
  REQUIRE(store.put(revision_of(before), before));
  REQUIRE(store.put(revision_of(after), after));
  const std::string half = after.substr(0, 15'000);
  world.put("file", half);
  world.do_and_die([&](WriteJournal& journal) {
    (void)journal.begin_in_place(world.at("file"), revision_of(before), revision_of(after));
  });
  REQUIRE(test::while_failing({SYS_pwrite64, EIO}, [&] {
    world.recover();
    return true;
  }));
  CHECK(revision_of(world.content("file")) == revision_of(half));
  CHECK(WriteJournal::has_leftovers(world.state.fd()));
  world.recover();
  CHECK(revision_of(world.content("file")) == revision_of(before));
  CHECK(world.journals() == 0);
}

TEST_CASE("journal: a file that others have changed is not touched") {
  const JournalWorld world;
  const std::string before = "the old content";
  const std::string after = "the new content";
  ContentStore store = world.store();
  REQUIRE(store.put(revision_of(before), before));
  REQUIRE(store.put(revision_of(after), after));
  for (const std::string& theirs : {std::string("repaired by hand"), after, std::string("the new content and more")}) {
    world.put("file", theirs);
    world.do_and_die([&](WriteJournal& journal) {
      (void)journal.begin_in_place(world.at("file"), revision_of(before), revision_of(after));
    });
    world.recover();
    CHECK(world.content("file") == theirs);
  }
}

TEST_CASE("journal: a missing file, or one of another type, does not block recovery") {
  const JournalWorld world;
  ContentStore store = world.store();
  REQUIRE(store.put(revision_of("old"), "old"));
  REQUIRE(store.put(revision_of("new"), "new"));
  REQUIRE(::mkfifo(world.at("pipe").c_str(), 0600) == 0);
  world.put("target", "target");
  fs::create_symlink("target", world.work / "link");
  for (const char* name : {"gone", "pipe", "link", "gone/below"}) {
    world.do_and_die([&](WriteJournal& journal) {
      (void)journal.begin_in_place(world.at(name), revision_of("old"), revision_of("new"));
    });
    world.recover();
    CHECK(world.journals() == 0);
  }
  CHECK(world.content("target") == "target");
}

TEST_CASE("journal: a malformed journal is removed") {
  const JournalWorld world;
  const std::string revision(32, 'a');
  int number = 0;
  for (const std::string& text :
       {std::string(), std::string("T"), std::string("P"), std::string("P") + revision, std::string("X/etc/passwd"),
        std::string(200'000, 'T'), std::string("\0\0\0", 3), "T" + world.work.path().string() + "/"}) {
    std::ofstream(world.state / ("writing_" + std::to_string(number++)), std::ios::binary) << text;
  }
  fs::create_directory(world.state / "writing_directory");
  fs::create_symlink("/etc/passwd", world.state / "writing_link");
  world.recover();
  CHECK(world.journals() == 2);  // other file types stay and do no harm
  CHECK(fs::exists(world.work.path()));
}

TEST_CASE("journal: names with line ends work") {
  const JournalWorld world;
  const std::string directory = "a\nb \"c\"";
  fs::create_directory(world.work / directory);
  world.put(directory + "/" + k_temporary, "half");
  world.do_and_die(
      [&](WriteJournal& journal) { (void)journal.begin_temporary(world.at(directory + "/" + k_temporary)); });
  world.recover();
  CHECK(fs::is_empty(world.work / directory));
}

TEST_CASE("journal: all files of an unfinished set are restored") {
  const JournalWorld world;
  const std::string old_a = "old a";
  const std::string new_a = "the new a";
  const std::string old_b = "the old and long b";
  const std::string new_b = "new b";
  const std::vector<agent::SetEntry> entries = {{world.at("a"), revision_of(old_a), revision_of(new_a)},
                                                {world.at("b"), revision_of(old_b), revision_of(new_b)},
                                                {world.at("gone"), revision_of(old_b), revision_of(new_b)}};
  ContentStore store = world.store();
  for (const std::string& content : {old_a, new_a, old_b, new_b}) {
    REQUIRE(store.put(revision_of(content), content));
  }
  const auto left = [&](const std::string& a, const std::string& b) {
    world.put("a", a);
    world.put("b", b);
    world.do_and_die([&](WriteJournal& journal) { REQUIRE(journal.begin_set(entries)); });
    world.recover();
    CHECK(world.journals() == 0);
    return world.content("a") + "|" + world.content("b");
  };
  CHECK(left(old_a, old_b) == old_a + "|" + old_b);
  CHECK(left(new_a, old_b) == old_a + "|" + old_b);
  CHECK(left(new_a, new_b) == old_a + "|" + old_b);
  // After a killed recovery: the begin of the old content, then the rest of the new one.
  for (std::size_t i = 0; i <= old_a.size(); ++i) {
    CHECK(left(old_a.substr(0, i) + new_a.substr(i), new_b) == old_a + "|" + old_b);
  }
  for (std::size_t i = 0; i <= old_b.size(); ++i) {
    CHECK(left(new_a, old_b.substr(0, i) + (i < new_b.size() ? new_b.substr(i) : "")) == old_a + "|" + old_b);
  }
  // A change by others is left alone.
  CHECK(left("others", new_b) == "others|" + old_b);
  CHECK(left(new_a, "") == old_a + "|");
}

TEST_CASE("journal: an incomplete entry of a set, or a finished one, changes nothing") {
  const JournalWorld world;
  ContentStore store = world.store();
  REQUIRE(store.put(revision_of("old"), "old"));
  REQUIRE(store.put(revision_of("new"), "new"));
  const std::vector<agent::SetEntry> entries = {{world.at("a"), revision_of("old"), revision_of("new")}};
  world.put("a", "new");
  world.do_and_die([&](WriteJournal& journal) {
    REQUIRE(journal.begin_set(entries));
    journal.done();
  });
  world.recover();
  CHECK(world.content("a") == "new");
  world.do_and_die([&](WriteJournal& journal) { REQUIRE(journal.begin_set(entries)); });
  for (const auto& entry : fs::directory_iterator(world.state.path())) {
    if (entry.path().filename().string().starts_with("writing_")) {
      fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
    }
  }
  world.recover();
  CHECK(world.content("a") == "new");
  CHECK(world.journals() == 0);
}
