#include <doctest/doctest.h>
#include <sys/syscall.h>

#include "agent/files/change/file_changer.hpp"
#include "support/failing_call.hpp"
#include "support/repeated.hpp"
#include "unit/agent/files/change/changing_world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using agent::EditSetMode;

namespace {

using Edits = std::vector<std::pair<std::string, std::vector<TextEdit>>>;

struct Set : ChangingWorld {
  EditSetMode mode;
  bool match_is_enough = false;

  Result<std::vector<ChangeAnswer>> edit_all(const Edits& edits) {
    wire::FileEditSetRequest set;
    set.owner = owner;
    set.preview = mode.preview;
    set.is_replacement = mode.is_replacement;
    set.match_is_enough = match_is_enough;
    for (const auto& [name, wanted] : edits) {
      set.files.push_back({at(name), wanted, expected});
    }
    return changer().edit_all(space(), set);
  }
  void put_and_read(const std::string& name, const std::string& content) {
    put(name, content);
    read(name);
  }
};

}  // namespace

TEST_CASE("edit set: all files are changed, and count as read afterwards") {
  Set world;
  fs::create_directory(world.work() / "sub");
  world.put_and_read("b", "two\n");
  world.put_and_read("a", "one\n");
  world.put_and_read("sub/c", "three\n");
  const auto edited =
      world.edit_all({{"b", {{"two", "2"}}}, {"sub/c", {{"three", "3"}, {"3", "33"}}}, {"a", {{"one", "1"}}}});
  REQUIRE(edited);
  REQUIRE(edited->size() == 3);
  CHECK((*edited)[0].path == world.at("b"));
  CHECK((*edited)[1].replacements == std::vector<std::size_t>{1, 1});
  CHECK((*edited)[2].revision == revision_of("1\n"));
  CHECK((*edited)[2].diff.text.find("+1\n") != std::string::npos);
  CHECK(world.content("a") + world.content("b") + world.content("sub/c") == "1\n2\n33\n");
  CHECK(world.edit("a", {{"1", "one"}}));
  CHECK(world.undo("b", (*edited)[0].change));
  CHECK(world.content("b") == "two\n");
  CHECK(world.is_tidy());
}

TEST_CASE("edit set: one impossible edit leaves all files unchanged") {
  Set world;
  world.put_and_read("a", "one\n");
  world.put_and_read("b", "two\n");
  world.put("unread", "three\n");
  world.put_and_read("binary", std::string("\0\1\2", 3));
  const auto fails_with = [&](const std::string& name, const std::string& code) {
    const auto edited = world.edit_all({{"a", {{"one", "1"}}}, {name, {{"three", "3"}}}});
    CHECK(code_of(edited) == code);
    CHECK(says(edited.error(), name));
    CHECK(says(edited.error(), "No file was changed"));
    CHECK(world.content("a") == "one\n");
  };
  fails_with("b", "no_match");
  fails_with("unread", "not_read");
  fails_with("missing", "no_such_file");
  fails_with("binary", "is_binary");
  const auto both = world.edit_all({{"a", {{"x", "y"}}}, {"missing", {{"x", "y"}}}});
  CHECK(says(both.error(), world.at("a") + ": oldString is not in the file"));
  CHECK(says(both.error(), "No such file or directory: " + world.at("missing")));
}

TEST_CASE("edit set: the errors of several files have at most 10,000 bytes together") {
  Set world;
  Edits edits;
  for (const char* name : {"a", "b", "c", "d"}) {
    world.put_and_read(name, "one\n");
    world.put(name, repeated("a line of another process\n", 1000));
    edits.push_back({name, {{"one", "1"}}});
  }
  world.changer().run_deferred_work();
  const auto refused = world.edit_all(edits);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().sentence().size() < 10'000);
  CHECK(says(refused.error(), "+a line of another process\n"));
  CHECK(says(refused.error(), "\nand 3 more\nNo file was changed"));
}

TEST_CASE("edit set: a file under two names is rejected") {
  Set world;
  world.put_and_read("a", "one two\n");
  fs::create_symlink(world.at("a"), world.at("link"));
  CHECK(code_of(world.edit_all({{"a", {{"one", "1"}}}, {"link", {{"two", "2"}}}})) == "same_file");
  CHECK(world.content("a") == "one two\n");
}

TEST_CASE("edit set: two hard links to one file are rejected, and replaced once") {
  Set world;
  world.put_and_read("a", "one two\n");
  fs::create_hard_link(world.at("a"), world.at("b"));
  world.read("b");
  CHECK(code_of(world.edit_all({{"a", {{"one", "1"}}}, {"b", {{"two", "2"}}}})) == "same_file");
  CHECK(world.content("a") == "one two\n");
  world.mode.is_replacement = true;
  const auto replaced = world.edit_all({{"a", {{"one", "one one", true}}}, {"b", {{"one", "one one", true}}}});
  REQUIRE(replaced);
  CHECK(replaced->size() == 1);
  CHECK(world.content("b") == "one one two\n");
}

TEST_CASE("edit set: an explicit revision is a condition for its file") {
  Set world;
  world.put_and_read("a", "one\n");
  world.expected = revision_of("one\n").substr(0, 8);
  CHECK(world.edit_all({{"a", {{"one", "1"}}}}));
  CHECK(code_of(world.edit_all({{"a", {{"1", "2"}}}})) == "file_changed");
}

TEST_CASE("edit set: the total size of the files is limited") {
  Set world;
  Edits edits;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "file" + std::to_string(i);
    world.put_and_read(name, std::string(12UL * 1024 * 1024, 'x') + " old");
    edits.push_back({name, {{"old", "new"}}});
  }
  CHECK(code_of(world.edit_all(edits)) == "too_large");
  CHECK(world.content("file0").ends_with("old"));
}

namespace {

const std::string k_old_a = "old a\n" + std::string(30'000, 'a');
const std::string k_new_a = "new a\n" + std::string(30'000, 'a');
const std::string k_old_b = "old b\n" + std::string(40'000, 'b');
const std::string k_new_b = "new " + std::string(10'000, 'n') + "b\n" + std::string(40'000, 'b');

/// `a` can be replaced. `b` has two names, so it is written in place, which begins with reserving space for it.
struct Failing : Set {
  Failing() {
    put_and_read("a", k_old_a);
    put("b", k_old_b);
    fs::create_hard_link(at("b"), at("b2"));
    read("b");
  }
  Result<std::vector<ChangeAnswer>> edit_both() {
    return edit_all({{"a", {{"old", "new"}}}, {"b", {{"old ", "new " + std::string(10'000, 'n')}}}});
  }
};

FailingCall no_room_for(std::size_t least, std::size_t most) {
  return {SYS_fallocate, ENOSPC, 3, static_cast<std::uint32_t>(least), static_cast<std::uint32_t>(most)};
}

}  // namespace

TEST_CASE("edit set: a failed write restores the old content of all files") {
  Failing world;
  CHECK(while_failing(no_room_for(k_new_b.size(), k_new_b.size()), [&] {
    const auto edited = world.edit_both();
    return code_of(edited) == "disk_full" && says(edited.error(), "no file was changed");
  }));
  CHECK((world.content("a") == k_old_a));
  CHECK((world.content("b") == k_old_b));
  CHECK(world.is_tidy());
  // No file has to be read again.
  CHECK(world.edit_both());
  CHECK((world.content("a") == k_new_a));
  CHECK((world.content("b") == k_new_b));
}

TEST_CASE("edit set: the next process restores what could not be restored at once") {
  Failing world;
  CHECK(while_failing(no_room_for(k_old_a.size(), k_new_b.size()),
                      [&] { return code_of(world.edit_both()) == "half_written"; }));
  CHECK((world.content("a") == k_new_a));
  world.restart();
  CHECK((world.content("a") == k_old_a));
  CHECK((world.content("b") == k_old_b));
}

TEST_CASE("edit set: recovery does not touch files that others have changed") {
  Failing world;
  CHECK(while_failing(no_room_for(k_old_a.size(), k_new_b.size()),
                      [&] { return code_of(world.edit_both()) == "half_written"; }));
  world.put("a", "by others\n");
  world.restart();
  CHECK(world.content("a") == "by others\n");
}

TEST_CASE("replacement: a preview changes nothing and counts as read only for itself") {
  Set world;
  world.mode.is_replacement = true;
  world.put("a", "old old\n");
  world.put("b", "none\n");
  const Edits edits = {{"a", {{"old", "new", true}}}, {"b", {{"old", "new", true}}}};
  const auto unseen = world.edit_all(edits);
  CHECK(code_of(unseen) == "not_read");
  CHECK(says(unseen.error(), "preview: true"));

  world.put("b", "none\n");
  world.mode.preview = true;
  const auto preview = world.edit_all(edits);
  REQUIRE(preview);
  REQUIRE(preview->size() == 1);
  CHECK(preview->front().replacements == std::vector<std::size_t>{2});
  CHECK(preview->front().diff.text.find("+new new") != std::string::npos);
  CHECK(preview->front().revision.empty());
  CHECK(world.content("a") == "old old\n");
  CHECK(code_of(world.write("a", "other")) == "not_read");

  world.mode.preview = false;
  world.put("a", "old old old\n");
  const auto changed = world.edit_all(edits);
  CHECK(code_of(changed) == "file_changed");
  CHECK(says(changed.error(), "since the preview"));
  world.put("a", "old old\n");
  const auto replaced = world.edit_all(edits);
  REQUIRE(replaced);
  CHECK(replaced->size() == 1);
  CHECK(world.content("a") == "new new\n");
  CHECK(world.content("b") == "none\n");
}

TEST_CASE("edit set: a preview counts as read for edits, not for a write or replacement") {
  Set world;
  world.put("a", "one\n");
  world.put("b", "two\n");
  const Edits edits = {{"a", {{"one", "1"}}}, {"b", {{"two", "2"}}}};
  world.mode.preview = true;
  REQUIRE(world.edit_all(edits));
  world.mode.preview = false;
  CHECK(code_of(world.write("a", "other")) == "not_read");
  world.mode.is_replacement = true;
  CHECK(code_of(world.edit_all(edits)) == "not_read");
  world.mode.is_replacement = false;
  world.put("b", "two two\n");
  const auto changed = world.edit_all(edits);
  CHECK(code_of(changed) == "file_changed");
  CHECK(says(changed.error(), "File has changed since the preview: " + world.at("b")));
  CHECK(world.content("a") == "one\n");
  // A call with one of the files is of the same kind.
  CHECK(world.edit("a", {{"one", "1"}}));
  CHECK(world.content("a") == "1\n");
}

TEST_CASE("guard: an exact and unique match replaces reading, if that is requested") {
  Set world;
  world.put("a", "one two two\n");
  CHECK(code_of(world.edit_all({{"a", {{"one", "1"}}}})) == "not_read");
  world.match_is_enough = true;
  CHECK(code_of(world.edit_all({{"a", {{"two", "2", true}}}})) == "not_read");
  CHECK(code_of(world.edit_all({{"a", {{"two", "2"}}}})) == "ambiguous_match");
  CHECK(code_of(world.edit_all({{"a", {{"three", "3"}}}})) == "no_match");
  CHECK(world.edit_all({{"a", {{"one", "1"}}}}));
  CHECK(world.content("a") == "1 two two\n");
}
