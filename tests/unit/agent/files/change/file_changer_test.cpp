#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <thread>

#include "unit/agent/files/change/changing_world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("guard: an existing file must be read by the same owner before a write") {
  ChangingWorld world;
  world.put("file", "theirs");
  CHECK(code_of(world.write("file", "mine")) == "not_read");
  CHECK(code_of(world.edit("file", {{"theirs", "mine"}})) == "not_read");
  CHECK(world.content("file") == "theirs");
  world.read("file");
  world.owner = "bob";
  CHECK(code_of(world.write("file", "bob's")) == "not_read");
  world.owner = k_owner;
  CHECK(world.write("file", "mine"));
  CHECK(world.content("file") == "mine");
}

TEST_CASE("guard: a read counts for the next server, too") {
  ChangingWorld world;
  world.put("file", "old");
  world.read("file");
  world.restart();
  CHECK(world.write("file", "new"));
}

TEST_CASE("guard: a part of a file is enough for an edit, not to write the whole file") {
  ChangingWorld world;
  world.put("file", "1\n2\n3\n4\n");
  world.read("file", 2);
  const auto refused = world.write("file", "all");
  REQUIRE(code_of(refused) == "not_read");
  CHECK(says(refused.error(), "File has not been read to its end: "));
  CHECK(says(refused.error(), "Read the rest of the file first (offset: 2). Or use file_edit"));
  REQUIRE(world.edit("file", {{"2\n", ""}}));
  // The removed line may be one of the two.
  CHECK(says(world.write("file", "all").error(), "(offset: 1)"));
  REQUIRE(world.undo("file"));
  CHECK(code_of(world.write("file", "all")) == "not_read");
  world.expected = revision_of("1\n2\n3\n4\n");
  REQUIRE(world.write("file", "all\n"));
  world.expected.reset();
  REQUIRE(world.edit("file", {{"all", "everything"}}));
  CHECK(world.write("file", "again"));
}

TEST_CASE("guard: an edit of a file that others changed does not count as reading it") {
  ChangingWorld world;
  world.put("file", "1\n2\n");
  world.read("file");
  world.put("file", "1\n2\ntheirs\n");
  REQUIRE(world.edit("file", {{"2", "two"}}));
  CHECK(code_of(world.write("file", "mine")) == "not_read");
  world.read("file");
  CHECK(world.write("file", "mine"));
}

TEST_CASE("guard: a written file counts as read until others recreate it") {
  ChangingWorld world;
  REQUIRE(world.write("file", "one"));
  REQUIRE(world.write("file", "two"));
  REQUIRE(world.edit("file", {{"two", "three"}}));
  fs::remove(world.at("file"));
  world.put("file", "theirs");
  CHECK(code_of(world.write("file", "four")) == "file_changed");
}

TEST_CASE("guard: a file that has changed is not overwritten, and the diff is shown") {
  ChangingWorld world;
  world.put("file", "one\ntwo\nthree\n");
  world.read("file");
  world.put("file", "one\n2\nthree\n");
  const auto refused = world.write("file", "mine");
  REQUIRE(code_of(refused) == "file_changed");
  CHECK(says(refused.error(), "-two\n+2\n"));
  CHECK(says(refused.error(), revision_of("one\n2\nthree\n").substr(0, 8)));
  CHECK(world.content("file") == "one\n2\nthree\n");
  CHECK(world.is_tidy());
}

TEST_CASE("guard: a conflict shows a diff only after deferred work has stored the content") {
  ChangingWorld world;
  const auto overwrite_after_others = [&](bool settled) {
    REQUIRE(world.write("a", "mine\n"));
    if (settled) {
      world.changer().run_deferred_work();
    }
    world.restart();
    world.put("a", "theirs\n");
    return world.write("a", "mine again\n");
  };
  auto refused = overwrite_after_others(false);
  CHECK(code_of(refused) == "file_changed");
  CHECK_FALSE(says(refused.error(), "-mine"));
  fs::remove(world.at("a"));
  refused = overwrite_after_others(true);
  CHECK(code_of(refused) == "file_changed");
  CHECK(says(refused.error(), "-mine\n+theirs"));
}

TEST_CASE("guard: compares content, not time stamps") {
  ChangingWorld world;
  world.put("file", "same");
  world.read("file");
  world.put("file", "different");
  world.put("file", "same");
  CHECK(world.write("file", "new"));

  // The content has changed, although size and times are the same.
  world.put("other", "aaaa");
  world.read("other");
  const struct stat before = status_of(world.at("other"));
  world.put("other", "bbbb");
  const std::array<timespec, 2> times = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, world.at("other").c_str(), times.data(), 0) == 0);
  CHECK(code_of(world.write("other", "new")) == "file_changed");
}

TEST_CASE("guard: a correct expected revision replaces a read") {
  ChangingWorld world;
  world.put("file", "old");
  world.expected = revision_of("older");
  CHECK(code_of(world.write("file", "new")) == "file_changed");
  world.expected = "";
  CHECK(code_of(world.write("file", "new")) == "file_changed");
  world.expected = revision_of("old");
  CHECK(world.write("file", "new"));
  CHECK(code_of(world.write("file", "newer")) == "file_changed");
  CHECK(code_of(world.write("gone", "new")) == "file_changed");
  CHECK(!fs::exists(world.at("gone")));
}

TEST_CASE("guard: a malformed expected revision is never opened as a file") {
  ChangingWorld world;
  world.put("file", "old");
  const std::string pipe = world.at("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& expected :
       {pipe, std::string("../../x"), std::string("a\0b", 3), std::string(100'000, 'a')}) {
    world.expected = expected;
    CHECK(code_of(world.write("file", "new")) == "file_changed");
    CHECK(code_of(world.edit("file", {{"none", "new"}})) == "file_changed");
  }
}

TEST_CASE("edit: a stale expected revision rejects the edit and shows the diff") {
  ChangingWorld world;
  world.put("file", "one\ntwo\n");
  world.read("file");
  world.expected = revision_of("one\ntwo\n");
  world.put("file", "one\nTWO\n");
  const auto edited = world.edit("file", {{"one", "1"}});
  REQUIRE_FALSE(edited);
  CHECK(edited.error().code == ErrorCode::file_changed);
  CHECK(edited.error().message.find("-two\n+TWO\n") != std::string::npos);
  CHECK(world.content("file") == "one\nTWO\n");
  world.expected = revision_of("one\nTWO\n");
  REQUIRE(world.edit("file", {{"one", "1"}}));
  CHECK(world.content("file") == "1\nTWO\n");
}

TEST_CASE("edit: a matching edit of a changed file is applied and reported as stale") {
  ChangingWorld world;
  world.put("file", "one\ntwo\nthree\n");
  world.read("file");
  world.put("file", "one\ntwo\nTHREE\n");
  const auto edited = world.edit("file", {{"one", "1"}});
  REQUIRE(edited);
  CHECK(world.content("file") == "1\ntwo\nTHREE\n");
  REQUIRE(edited->since);
  CHECK(edited->since->text.find("-three\n+THREE\n") != std::string::npos);
  CHECK(edited->diff.text.find("-one\n+1\n") != std::string::npos);
  CHECK(edited->diff.text.find("THREE\n+") == std::string::npos);
  CHECK(!world.edit("file", {{"two", "2"}})->since);
}

TEST_CASE("edit: an edit that no longer matches shows what others have changed") {
  ChangingWorld world;
  world.put("file", "one\ntwo\n");
  world.read("file");
  world.put("file", "one\nzwei\n");
  const auto edited = world.edit("file", {{"two", "2"}});
  REQUIRE(code_of(edited) == "no_match");
  CHECK(says(edited.error(), "-two\n+zwei\n"));
  CHECK(world.content("file") == "one\nzwei\n");
}

TEST_CASE("edit: replaceAll is rejected if others have changed the file") {
  ChangingWorld world;
  world.put("file", "a\nb\n");
  world.read("file");
  world.put("file", "a\nb\na\n");
  const auto edited = world.edit("file", {{"a", "c", true}});
  REQUIRE(code_of(edited) == "file_changed");
  CHECK(says(edited.error(), "+a\n"));
  CHECK(world.content("file") == "a\nb\na\n");
  CHECK(world.edit("file", {{"b", "c", true}}));
}

TEST_CASE("edit: several edits are applied all or none") {
  ChangingWorld world;
  REQUIRE(world.write("file", "one\ntwo\n"));
  const auto refused = world.edit("file", {{"one", "1"}, {"three", "3"}});
  CHECK(code_of(refused) == "no_match");
  CHECK(world.content("file") == "one\ntwo\n");
  const auto edited = world.edit("file", {{"one", "1"}, {"two", "2"}});
  REQUIRE(edited);
  CHECK(world.content("file") == "1\n2\n");
  CHECK(edited->replacements == std::vector<std::size_t>{1, 1});
  CHECK(code_of(world.edit("file", {{"", "x"}})) == "empty_old_text");
  CHECK(code_of(world.edit("file", {{"1", "1"}})) == "identical_texts");
  CHECK(code_of(world.edit("none", {{"1", "2"}})) == "no_such_file");
}

TEST_CASE("edit: line ends, byte order mark and encoding are preserved") {
  ChangingWorld world;
  for (const auto& [before, edit, after] :
       {std::tuple(std::string("a\r\nb\r\n"), TextEdit{"a\nb", "c\nd"}, std::string("c\r\nd\r\n")),
        std::tuple(std::string("\xEF\xBB\xBF"
                               "a\n"),
                   TextEdit{"a", "b"},
                   std::string("\xEF\xBB\xBF"
                               "b\n")),
        std::tuple(std::string("\xFF\xFE"
                               "a\0\r\0\n\0",
                               8),
                   TextEdit{"a", "é"}, std::string("\xFF\xFE\xE9\0\r\0\n\0", 8)),
        std::tuple(std::string("\xFE\xFF\0a\0\n", 6), TextEdit{"a", "😀"}, std::string("\xFE\xFF\xD8\x3D\xDE\0\0\n", 8)),
        std::tuple(std::string("caf\xE9 a\x93\n"), TextEdit{"a\xC2\x93", "b"}, std::string("caf\xE9 b\n"))}) {
    world.put("file", before);
    world.read("file");
    REQUIRE(world.edit("file", {edit}));
    CHECK(world.content("file") == after);
    REQUIRE(world.undo("file"));
    CHECK(world.content("file") == before);
  }
}

TEST_CASE("edit: a binary file can be written, not edited") {
  ChangingWorld world;
  world.put("file", std::string("\0\1\2", 3));
  world.read("file");
  CHECK(code_of(world.edit("file", {{"a", "b"}})) == "is_binary");
  CHECK(world.write("file", binary(std::string_view("\0\1", 2))));
}

TEST_CASE("change: waits for a locked directory up to a limit") {
  ChangingWorld world;
  world.put("file", "old");
  world.read("file");
  const Fd directory(::open(world.work().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(directory.get(), LOCK_EX) == 0);
  CHECK(code_of(world.write("file", "new")) == "directory_locked");
  CHECK(world.content("file") == "old");
  ::flock(directory.get(), LOCK_UN);
  CHECK(world.write("file", "new"));
}

TEST_CASE("change: concurrent processes never overwrite unread changes") {
  ChangingWorld world;
  world.put("file", "0");
  constexpr int k_writers = 4;
  constexpr int k_rounds = 25;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < k_writers; ++writer) {
    writers.emplace_back([&, writer] {
      const Fd state(::open(world.state().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      auto changer = std::move(*FileChanger::open(state.get()));
      const auto space = std::move(*FileSpace::open(""));
      for (int done = 0; done < k_rounds;) {
        // Increments a counter. After a conflict, the file is read again.
        const std::string seen = world.content("file");
        const std::string next = std::to_string(std::stoi(seen) + 1);
        const auto written =
            changer.write(space, {world.at("file"), std::to_string(writer), revision_of(seen)}, text(next));
        done += written ? 1 : 0;
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  CHECK(world.content("file") == std::to_string(k_writers * k_rounds));
  CHECK(world.is_tidy());
}

TEST_CASE("change: with a root, nothing outside it is changed or revealed") {
  ChangingWorld world;
  fs::create_directory(world.at("root"));
  world.put("secret", "secret");
  fs::create_symlink("../secret", world.at("root/link"));
  const auto space = FileSpace::open(world.at("root"));
  REQUIRE(space);
  const auto write = [&](const std::string& path) {
    return world.changer().write(*space, {path, k_owner, revision_of("secret")}, text("x"));
  };
  CHECK(code_of(write(world.at("root/link"))) == "outside_root");
  CHECK(code_of(write(world.at("root/../secret"))) == "outside_root");
  CHECK(code_of(write(world.at("secret"))) == "outside_root");
  CHECK(code_of(write(world.at("new"))) == "outside_root");
  CHECK(code_of(world.changer().undo(*space, {world.at("secret"), k_owner, {}}, {})) == "outside_root");
  world.expected.reset();
  CHECK(world.changer().write(*space, {world.at("root/sub/file"), k_owner, {}}, text("x")));
  CHECK(world.content("root/sub/file") == "x");
  CHECK(world.content("secret") == "secret");
  CHECK(!fs::exists(world.at("new")));
}
