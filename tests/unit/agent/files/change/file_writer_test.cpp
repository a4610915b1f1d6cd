#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <array>

#include "agent/files/change/write_journal.hpp"
#include "support/failing_call.hpp"
#include "unit/agent/files/change/changing_world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A world in which spare files are prepared.
struct PreparedWorld : ChangingWorld {
  PreparedWorld() { restart(true); }
  void prepare() {
    put("first", "x");
    read("first");
    REQUIRE(write("first", "y"));
    changer().run_deferred_work();
    REQUIRE(spare_fds().size() == 1);
    REQUIRE(is_tidy());
  }
  /// Number of open files without a name in the directory.
  [[nodiscard]] std::vector<int> spare_fds() const {
    std::vector<int> found;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const std::string target = fs::read_symlink(entry.path(), ignored).string();
      if (target.starts_with(work().string() + "/") && target.ends_with(" (deleted)")) {
        found.push_back(std::stoi(entry.path().filename().string()));
      }
    }
    return found;
  }
  [[nodiscard]] int spare_fd() const { return spare_fds().at(0); }
};

/// Makes every put into the store fail.
void break_store(const ChangingWorld& world) {
  fs::remove_all(world.state() / "contents");
  fs::create_directory(world.state() / "recent.contents");
}

}  // namespace

TEST_CASE("write: creates a new file and its directories with the exact content") {
  ChangingWorld world;
  for (const std::string& content :
       {std::string(), std::string("x"), std::string("no newline at the end"), std::string("any\0bytes\xFF\r\n", 13)}) {
    const std::string name = "a/b/" + std::to_string(content.size());
    const auto answer = world.write(name, binary(content));
    REQUIRE(answer);
    CHECK(world.content(name) == content);
    CHECK(answer->before.empty());
    CHECK(answer->revision == revision_of(content));
    CHECK(answer->size == content.size());
    CHECK(answer->path == world.at(name));
  }
  CHECK(world.is_tidy());
}

TEST_CASE("write: names with line ends, quotes, dashes and invalid UTF-8 work") {
  ChangingWorld world;
  for (const std::string& name :
       {std::string("a\nb"), std::string("\"'`$(x)"), std::string(" "), std::string("-rf"), std::string("\xFF\xFE"),
        std::string("\t\\n"), std::string(255, 'n'), std::string("x (deleted)")}) {
    REQUIRE(world.write(name, "one\n"));
    REQUIRE(world.edit(name, {{"one", "two"}}));
    CHECK(world.content(name) == "two\n");
    REQUIRE(world.undo(name));
    CHECK(world.content(name) == "one\n");
  }
}

TEST_CASE("write: text keeps the encoding of the file unless another is requested") {
  ChangingWorld world;
  world.put("file", "caf\xE9\n");
  world.read("file");
  REQUIRE(world.write("file", "thé\n"));
  CHECK(world.content("file") == "th\xE9\n");
  CHECK(code_of(world.write("file", "日本\n")) == "not_encodable");
  CHECK(world.content("file") == "th\xE9\n");
  REQUIRE(world.write("file", text("日本\n", {}, Encoding::utf8)));
  CHECK(world.content("file") == "日本\n");
  REQUIRE(world.write("new", text("é", {}, Encoding::utf16_le)));
  CHECK(world.content("new") == "\xFF\xFE\xE9" + std::string(1, '\0'));
  REQUIRE(world.write("new", binary(std::string_view("\0x", 2))));
  CHECK(world.content("new") == std::string("\0x", 2));
}

TEST_CASE("write: a byte order mark in the text is not stored twice") {
  ChangingWorld world;
  const std::string mark = "\xEF\xBB\xBF";
  REQUIRE(world.write("new", mark + "x"));
  CHECK(world.content("new") == mark + "x");
  REQUIRE(world.write("new", mark + "y"));
  CHECK(world.content("new") == mark + "y");
  REQUIRE(world.write("new", "z"));
  CHECK(world.content("new") == mark + "z");
  REQUIRE(world.write("wide", text(mark + "x", {}, Encoding::utf16_le)));
  CHECK(world.content("wide") == std::string("\xFF\xFEx\0", 4));
}

TEST_CASE("write: invalid UTF-16 and text too large for a diff are written and undone") {
  ChangingWorld world;
  for (const std::string& bytes : {std::string("\xFF\xFE\x41"), std::string("\xFE\xFF\xD8\0", 4),
                                   "\xFF\xFE" + std::string(17UL * 1024 * 1024, 'x')}) {
    world.put("file", bytes);
    world.read("file");
    CHECK(code_of(world.edit("file", {{"A", "B"}})) == (bytes.size() < 10 ? "is_binary" : "too_large"));
    REQUIRE(world.write("file", binary("new")));
    REQUIRE(world.undo("file"));
    CHECK(world.content("file") == bytes);
  }
}

TEST_CASE("write: a directory, FIFO, socket or device is rejected without blocking") {
  ChangingWorld world;
  REQUIRE(::mkfifo(world.at("pipe").c_str(), 0600) == 0);
  CHECK(code_of(world.write("", "x")) == "is_a_directory");
  CHECK(code_of(world.write("pipe", "x")) == "not_a_file");
  CHECK(code_of(world.edit("pipe", {{"a", "b"}})) == "not_a_file");
  CHECK(code_of(world.undo("pipe")) == "not_a_file");
  CHECK(code_of(world.write_in_pieces("pipe", {"x"})) == "not_a_file");
  fs::create_symlink("/dev/null", world.at("null"));
  CHECK(code_of(world.write("null", "x")) == "not_a_file");
}

TEST_CASE("write: follows a symbolic link and keeps it") {
  ChangingWorld world;
  fs::create_directory(world.at("dir"));
  world.put("dir/target", "old");
  fs::create_symlink("dir/target", world.at("link"));
  world.read("link");
  const auto answer = world.write("link", "new");
  REQUIRE(answer);
  CHECK(answer->path == world.at("dir/target"));
  CHECK(fs::is_symlink(world.at("link")));
  CHECK(world.content("dir/target") == "new");
  CHECK(world.write("dir/target", "newer"));  // read under one name, written under the other
}

TEST_CASE("write: keeps mode and extended attributes") {
  ChangingWorld world;
  world.put("file", "old");
  const std::string path = world.at("file");
  REQUIRE(::chmod(path.c_str(), 04751) == 0);
  REQUIRE(::setxattr(path.c_str(), "user.note", "hello", 5, 0) == 0);
  world.read("file");
  const auto answer = world.write("file", "new");
  REQUIRE(answer);
  CHECK(answer->notes.empty());
  const struct stat after = status_of(path);
  CHECK((after.st_mode & 07777) == 04751);
  std::string value(10, '\0');
  CHECK(::getxattr(path.c_str(), "user.note", value.data(), value.size()) == 5);
  CHECK(value.substr(0, 5) == "hello");
}

TEST_CASE("write: a spare file gets the metadata of the file that it replaces") {
  PreparedWorld world;
  world.put("file", "old");
  world.read("file");
  const std::string path = world.at("file");
  REQUIRE(::chmod(path.c_str(), 0751) == 0);
  REQUIRE(::setxattr(path.c_str(), "user.note", "hello", 5, 0) == 0);
  world.prepare();
  struct stat prepared {};
  REQUIRE(::fstat(world.spare_fd(), &prepared) == 0);
  const auto answer = world.write("file", "new");
  REQUIRE(answer);
  CHECK(status_of(path).st_ino == prepared.st_ino);
  CHECK(answer->notes.empty());
  CHECK(world.content("file") == "new");
  CHECK((status_of(path).st_mode & 07777U) == 0751);
  CHECK(status_of(path).st_nlink == 1);
  std::string value(10, '\0');
  CHECK(::getxattr(path.c_str(), "user.note", value.data(), value.size()) == 5);
}

TEST_CASE("write: an empty file from a spare file has the time of the write") {
  PreparedWorld world;
  world.put("file", "old");
  world.read("file");
  world.prepare();
  const timespec past{1'000'000'000, 0};
  const std::array<timespec, 2> times = {past, past};
  REQUIRE(::futimens(world.spare_fd(), times.data()) == 0);
  REQUIRE(world.write("file", ""));
  CHECK(status_of(world.at("file")).st_mtim.tv_sec > 1'700'000'000);
}

TEST_CASE("write: a file without an access list gets none from its directory") {
  PreparedWorld world;
  world.put("file", "old");
  world.read("file");
  // user::rwx, user:1234:rwx, group::r-x, mask::rwx, other::r-x
  constexpr std::array<unsigned char, 44> k_list = {
      2, 0, 0,    0,    1,    0,    7,  0, 0xFF, 0xFF, 0xFF, 0xFF, 2,    0,    7,  0, 0xD2, 4, 0,    0,    4,    0,
      5, 0, 0xFF, 0xFF, 0xFF, 0xFF, 16, 0, 7,    0,    0xFF, 0xFF, 0xFF, 0xFF, 32, 0, 5,    0, 0xFF, 0xFF, 0xFF, 0xFF};
  REQUIRE(::setxattr(world.work().c_str(), "system.posix_acl_default", k_list.data(), k_list.size(), 0) == 0);
  const auto has_list = [&](const std::string& name) {
    return ::getxattr(world.at(name).c_str(), "system.posix_acl_access", nullptr, 0) > 0;
  };
  REQUIRE(world.write("new", "x"));
  CHECK(has_list("new"));
  world.prepare();
  REQUIRE(world.write("file", "new"));
  CHECK(!has_list("file"));
}

TEST_CASE("in place: a file with several names is written in place, with a note") {
  ChangingWorld world;
  world.put("file", "the old content");
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.read("file");
  const auto answer = world.write("file", "new");
  REQUIRE(answer);
  CHECK(notes(answer, "in place"));
  CHECK(notes(answer, "2 names"));
  CHECK(world.content("other") == "new");
  CHECK(status_of(world.at("file")).st_ino == status_of(world.at("other")).st_ino);
  REQUIRE(world.undo("file"));
  CHECK(world.content("other") == "the old content");
}

TEST_CASE("in place: a change by another process during the call is not overwritten") {
  const ChangingWorld world;
  world.put("file", "old\n");
  fs::create_hard_link(world.at("file"), world.at("other"));
  const TemporaryDirectory state;
  auto store = agent::ContentStore::open(state.fd());
  REQUIRE(store);
  REQUIRE(store->put(revision_of("old\n"), "old\n"));
  agent::FileWriter writer(state.fd(), std::move(*store));
  const auto space = FileSpace::open("");
  const auto current = agent::find_current(*space, world.at("file"), agent::Absent::is_an_error);
  REQUIRE(current);
  world.put("other", "by another\n");
  CHECK(code_of(writer.write(*current, agent::NewBytes("new\n"), std::nullopt)) == "file_changed");
  CHECK(world.content("file") == "by another\n");
}

TEST_CASE("in place: refuses to write if the old content cannot be stored") {
  ChangingWorld world;
  world.put("file", "old");
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.expected = revision_of("old");
  break_store(world);
  const auto answer = world.write("file", "new");
  CHECK(!answer);
  CHECK(world.content("file") == "old");
}

TEST_CASE("in place: refuses to write from a damaged copy") {
  ChangingWorld world;
  const std::string old(2'000'000, 'o');
  const std::string damaged(1'500'000, 'd');
  world.put("file", old);
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.read("file");
  std::ofstream(world.state() / "contents" / revision_of(std::string(1'500'000, 'n'))) << damaged;
  CHECK(code_of(world.write("file", std::string(1'500'000, 'n'))) == "no_backup");
  CHECK(world.content("other") == old);
}

TEST_CASE("in place: the next session restores a file that could not be restored") {
  ChangingWorld world;
  const std::string old(300'000, 'o');
  world.put("file", old);
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.read("file");
  // It is written in pieces of 256 KiB. The last piece fails, first of the new content and then of the old one.
  REQUIRE(while_failing({SYS_pwrite64, EIO, 2, 10'000, 256 * 1024 - 1}, [&] {
    const auto answer = world.write("file", std::string(600'000, 'n'));
    const bool goes_on = world.write("another", "content").has_value();
    return code_of(answer) == "half_written" && says(answer.error(), "next session") && goes_on;
  }));
  CHECK(revision_of(world.content("other")) == revision_of(old.substr(0, 256 * 1024) + std::string(256 * 1024, 'n')));
  const Fd state(::open(world.state().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto store = agent::ContentStore::open(state.get());
  REQUIRE(store);
  agent::WriteJournal::recover(state.get(), *store);
  CHECK(revision_of(world.content("other")) == revision_of(old));
  CHECK(world.content("another") == "content");
  CHECK_FALSE(agent::WriteJournal::has_leftovers(state.get()));
}

TEST_CASE("in place: a failed write restores the file and leaves no journal entry") {
  ChangingWorld world;
  const std::string old(1000, 'o');
  world.put("file", old);
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.read("file");
  REQUIRE(while_failing({SYS_pwrite64, EIO, 2, 10'000, 256 * 1024 - 1},
                        [&] { return code_of(world.write("file", std::string(300'000, 'n'))) == "io_error"; }));
  CHECK(world.content("other") == old);
  // Others may give it a content that looks like a mixture.
  const std::string theirs(2000, 'n');
  world.put("file", theirs);
  const Fd state(::open(world.state().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto store = agent::ContentStore::open(state.get());
  REQUIRE(store);
  agent::WriteJournal::recover(state.get(), *store);
  CHECK(world.content("other") == theirs);
}

TEST_CASE("in place: a content too large to store is rejected with a next step") {
  ChangingWorld world;
  world.put("file", "old");
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.read("file");
  std::vector<std::string> pieces(129, std::string(1024UL * 1024, 'x'));
  const auto answer = world.write_in_pieces("file", pieces);
  REQUIRE(code_of(answer) == "no_backup");
  CHECK(says(answer.error(), "2 names"));
  CHECK(says(answer.error(), "Cannot store the new content"));
  CHECK(says(answer.error(), "135266304 bytes exceed"));
  CHECK(says(answer.error(), "copy that over this one with a command"));
  CHECK(world.content("other") == "old");
  CHECK(world.is_tidy());
}

TEST_CASE("in place: a file of the kernel is written without replacing or syncing it") {
  ChangingWorld world;
  fs::create_symlink("/proc/self/oom_score_adj", world.at("score"));
  const std::string before = world.content("score");
  const std::string after = before == "900\n" ? "901\n" : "900\n";
  REQUIRE(in_a_child([&] {
    world.read("score");
    const auto answer = world.write("score", after);
    return answer && notes(answer, "in place") && world.content("score") == after;
  }));
  CHECK(world.content("score") == before);
}

TEST_CASE("write: EBUSY for a new file leaves nothing behind") {
  ChangingWorld world;
  REQUIRE(while_failing({SYS_renameat2, EBUSY}, [&] { return code_of(world.write("file", "new")) == "io_error"; }));
  CHECK(!fs::exists(world.at("file")));
  CHECK(world.is_tidy());
}

TEST_CASE("staged: the content appears as a whole or not at all") {
  ChangingWorld world;
  REQUIRE(world.changer().stage(world.space(), world.at("dir/file"), "one ", true));
  REQUIRE(world.changer().stage(world.space(), world.at("dir/file"), "two", false));
  CHECK(!fs::exists(world.at("dir/file")));
  world.changer().abandon_staged();
  CHECK(world.is_tidy());
  CHECK(code_of(world.changer().stage(world.space(), world.at("dir/file"), "x", false)) == "nothing_staged");
  const auto answer = world.write_in_pieces("dir/file", {"one ", "two"});
  REQUIRE(answer);
  CHECK(world.content("dir/file") == "one two");
  CHECK(answer->revision == revision_of("one two"));
  CHECK(answer->size == 7);
  CHECK(world.is_tidy());
  world.put("dir/file", "theirs");
  CHECK(code_of(world.write_in_pieces("dir/file", {"mine"})) == "file_changed");
  CHECK(world.content("dir/file") == "theirs");
  CHECK(world.is_tidy());
}

TEST_CASE("staged: a file with several names is written in place") {
  ChangingWorld world;
  world.put("file", "the old content");
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.read("file");
  const auto answer = world.write_in_pieces("file", {"new ", "content, which is longer"});
  REQUIRE(answer);
  CHECK(notes(answer, "in place"));
  CHECK(notes(answer, "2 names"));
  CHECK(answer->revision == revision_of("new content, which is longer"));
  CHECK(world.content("other") == "new content, which is longer");
  CHECK(status_of(world.at("file")).st_ino == status_of(world.at("other")).st_ino);
  CHECK(world.is_tidy());
  REQUIRE(world.undo("file"));
  CHECK(world.content("other") == "the old content");
}

TEST_CASE("staged: refuses to write in place if the old content cannot be stored") {
  ChangingWorld world;
  world.put("file", "old");
  fs::create_hard_link(world.at("file"), world.at("other"));
  world.expected = revision_of("old");
  break_store(world);
  CHECK(code_of(world.write_in_pieces("file", {"new"})) == "no_backup");
  CHECK(world.content("file") == "old");
  CHECK(world.is_tidy());
}

TEST_CASE("staged: a large file is replaced and restored without loading it") {
  ChangingWorld world;
  const std::string large(17 * 1024 * 1024, 'x');
  REQUIRE(world.write_in_pieces("file", {large, "end\n"}));
  const auto answer = world.write("file", "small");
  REQUIRE(answer);
  CHECK(answer->before == revision_of(large + "end\n"));
  REQUIRE(world.undo("file"));
  CHECK(world.content("file") == large + "end\n");
  CHECK(code_of(world.edit("file", {{"end", "END"}})) == "too_large");
}

TEST_CASE("staged: a text for another encoding than UTF-8 is rejected") {
  ChangingWorld world;
  world.put("file", std::string("\xFF\xFEo\0l\0d\0", 8));
  const std::string revision = agent::revision_of(world.content("file"));
  REQUIRE(world.changer().stage(world.space(), world.at("file"), "new", true));
  const agent::ChangeRequest request{world.at("file"), "me", revision};
  CHECK(code_of(world.changer().write_staged(world.space(), request, {})) == "too_large");
  CHECK(world.content("file").size() == 8);
  REQUIRE(world.changer().stage(world.space(), world.at("file"), "new", true));
  agent::NewContent as_utf8;
  as_utf8.encoding = agent::Encoding::utf8;
  REQUIRE(world.changer().write_staged(world.space(), request, as_utf8));
  CHECK(world.content("file") == "new");
}
