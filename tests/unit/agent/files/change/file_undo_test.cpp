#include <doctest/doctest.h>

#include "unit/agent/files/change/changing_world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("undo: restores the mode that a write has set") {
  ChangingWorld world;
  REQUIRE(world.write("script", text("#!/bin/sh\n", 0750)));
  CHECK((status_of(world.at("script")).st_mode & 07777) == 0750);
  REQUIRE(world.write("script", text("x", 0600)));
  CHECK((status_of(world.at("script")).st_mode & 07777) == 0600);
  REQUIRE(world.write("script", "y"));
  CHECK((status_of(world.at("script")).st_mode & 07777) == 0600);
  REQUIRE(world.undo("script"));
  REQUIRE(world.undo("script"));
  REQUIRE(world.write("plain", "x"));
  CHECK((status_of(world.at("plain")).st_mode & 07777) == 0644);
}

TEST_CASE("undo: a change and an undo can be undone") {
  ChangingWorld world;
  REQUIRE(world.write("file", "one\n"));
  REQUIRE(world.write("file", "two\n"));
  const auto undone = world.undo("file");
  REQUIRE(undone);
  CHECK(world.content("file") == "one\n");
  CHECK(undone->diff.text.find("-two\n+one\n") != std::string::npos);
  CHECK(undone->revision == revision_of("one\n"));
  REQUIRE(world.undo("file"));
  CHECK(world.content("file") == "two\n");
  CHECK(world.write("file", "three\n"));
}

TEST_CASE("undo: removes a file that the change created, and can be undone") {
  ChangingWorld world;
  const auto made = world.write("dir/file", "content");
  REQUIRE(made);
  const auto removed = world.undo("dir/file", made->change);
  REQUIRE(removed);
  CHECK(removed->revision.empty());
  CHECK(!fs::exists(world.at("dir/file")));
  REQUIRE(world.undo("dir/file"));
  CHECK(world.content("dir/file") == "content");
  CHECK(world.write("dir/file", "more"));
}

TEST_CASE("undo: a change with later changes by others is rejected with a diff") {
  ChangingWorld world;
  REQUIRE(world.write("file", "one\n"));
  const auto second = world.write("file", "two\n");
  REQUIRE(second);
  REQUIRE(world.write("file", "three\n"));
  CHECK(code_of(world.undo("file", second->change)) == "file_changed");
  world.put("file", "three\ntheirs\n");
  const auto refused = world.undo("file");
  REQUIRE(code_of(refused) == "file_changed");
  CHECK(says(refused.error(), "+theirs"));
  CHECK(world.content("file") == "three\ntheirs\n");
  fs::remove(world.at("file"));
  CHECK(code_of(world.undo("file")) == "file_changed");
  CHECK(code_of(world.undo("never")) == "no_such_change");
  CHECK(code_of(world.undo("file", "change_none")) == "no_such_change");
}

TEST_CASE("undo: works for the next server") {
  ChangingWorld world;
  world.put("file", "old");
  world.read("file");
  const auto changed = world.write("file", "new");
  REQUIRE(changed);
  world.restart();
  REQUIRE(world.undo("file", changed->change));
  CHECK(world.content("file") == "old");
}
