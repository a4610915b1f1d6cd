#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/file_tools.hpp"

// Replies of searches, and of replacements in the files that a search finds.

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr std::size_t k_max_found_bytes = 10'000;

}  // namespace

TEST_CASE("grep: long context is shortened around the match, without an offset") {
  Files files;
  (void)files.sh(
      "cd /app && line=$(head -c 480 /dev/zero | tr '\\0' x) && for i in $(seq 1 60); do echo \"$i $line\"; done > "
      "long "
      "&& sed -i 's/^30 x/30 needle x/' long && mkdir two && cp long two/a && cp long two/b");
  const json found = files.tools.grep("needle", "long", {{"context", 50}});
  REQUIRE(done(found));
  CHECK(text_of(found).size() <= k_max_found_bytes);
  CHECK(text_of(found).size() > k_max_found_bytes / 2);
  CHECK(says(found, "30: 30 needle"));
  CHECK(says(found, "\n29- 29 x"));
  CHECK(says(found, "\n31- 31 x"));
  CHECK(says(found, "[context was shortened to fit]"));
  CHECK(!says(found, "reads on"));
  const json two = files.tools.grep("needle", "two", {{"context", 50}});
  CHECK(text_of(two).size() <= k_max_found_bytes);
  CHECK(says(two, "[matches 1-1 of 2; offset: 1 reads on]"));
  CHECK(!says(two, "context was shortened"));
  const json second = files.tools.grep("needle", "two", {{"context", 50}, {"offset", 1}});
  CHECK(says(second, "two/b\n"));
  CHECK(!says(second, "reads on"));
}

TEST_CASE("search: numeric arguments of other clients' tools are accepted") {
  Files files;
  (void)files.sh("cd /app && seq 1 300 > numbers");
  const json context = files.tools.grep("^7$", "numbers", {{"-A", 1}, {"-B", 3}});
  CHECK(says(context, "4- 4\n5- 5\n6- 6\n7: 7\n8- 8\n9- 9\n10- 10\n"));
  CHECK(says(files.tools.grep(".", "numbers", {{"head_limit", 0}}), "\n300: 300\n"));
  CHECK(says(files.tools.grep(".", "numbers", {{"maxResults", 100'000}}), "\n300: 300\n"));
  CHECK(says(files.tools.grep(".", "numbers", {{"-C", 99}}), "Invalid argument -C: "));
}

TEST_CASE("grep: `type`, an argument of other clients' tools, selects files") {
  Files files;
  (void)files.sh("cd /app && echo needle | tee a.ts b.tsx c.py d.txt e.zig");
  const auto files_of = [&](const char* type) {
    return text_of(files.tools.grep("needle", ".", {{"type", type}, {"output", "files"}}));
  };
  CHECK(files_of("ts").starts_with("a.ts\nb.tsx"));
  CHECK(files_of("ts").find("c.py") == std::string::npos);
  CHECK(files_of("py").starts_with("c.py"));
  CHECK(files_of("zig").starts_with("e.zig"));
}

TEST_CASE("search: absolute and home directory globs start at their directory") {
  Files files;
  (void)files.sh(
      "mkdir -p /app/t/src/deep /srv/other && cd /app/t/src && echo needle | tee a.ts deep/b.ts /srv/other/c.ts "
      "~/d.ts");
  CHECK(text_of(files.tools.glob("/app/t/src/*.ts")) == "t/src/a.ts");
  CHECK(text_of(files.tools.glob("/app/t/**/*.ts")) == "t/src/a.ts\nt/src/deep/b.ts");
  CHECK(text_of(files.tools.glob("./t/src/*.ts")) == "t/src/a.ts");
  CHECK(text_of(files.tools.glob("/srv/other/*.ts")) == "/srv/other/c.ts");
  CHECK(text_of(files.tools.glob("../srv/other/*.ts")) == "/srv/other/c.ts");
  CHECK(text_of(files.tools.glob("~/*.ts")).starts_with("/root/d.ts\n"));
  CHECK(text_of(files.tools.glob("/app/t/src/*.ts", {{"path", "t"}})) == "t/src/a.ts");
  CHECK(text_of(files.tools.glob("/src/*.ts", {{"path", "t"}})) == "t/src/a.ts");  // anchored at the path
  const auto grep = [&](const json& include) {
    return files.server.call("file_grep", {{"pattern", "needle"}, {"include", include}, {"output", "files"}});
  };
  CHECK(says(grep("/app/t/src/*.ts"), "t/src/a.ts\n[1 of 1 file]"));
  CHECK(says(grep("~/*.ts"), "/root/d.ts\n[1 of 1 file]"));
  CHECK(says(grep({"/app/t/src/*.ts", "/srv/other/*"}), "/app/t/src/a.ts\n/srv/other/c.ts\n"));
  CHECK(error_code(grep({"/app/t/src/*.ts", "*.js"})) == "bad_arguments");
}

TEST_CASE("edit: a glob may be absolute, also where the workdir is the root") {
  Files files({"--init"}, "dockbridge-test:slim", {"--workdir", "/"});
  (void)files.sh("mkdir -p /t/src && echo old > /t/src/a.ts");
  const json arguments = {{"glob", "/t/src/*.ts"}, {"oldString", "old"}, {"newString", "new"}};
  json preview = arguments;
  preview["preview"] = true;
  const json shown = files.server.call("file_edit", preview);
  CHECK(says(shown, "Preview: 1 replacement in 1 file. Nothing was changed; call without preview to change it."));
  CHECK(says(files.server.call("file_edit", arguments), "Edited 1 file."));
  CHECK(files.sh("cat /t/src/a.ts") == "new");
}

TEST_CASE("edit: a replacement names the files that it skipped") {
  Files files;
  (void)files.sh(
      "cd /app && git init -q . 2>/dev/null; mkdir -p .git && printf 'ignored.txt\\n' > .gitignore && "
      "for f in a.txt ignored.txt .hidden.txt \"$(printf 'bad\\377.txt')\"; do echo old > \"$f\"; done && "
      "printf 'old\\0' > binary.txt");
  const json arguments = {{"glob", "*.txt"}, {"oldString", "old"}, {"newString", "new"}, {"preview", true}};
  const json preview = files.server.call("file_edit", arguments);
  REQUIRE(done(preview));
  CHECK(says(preview, "1 replacement in 1 file."));
  CHECK(says(preview, "\n[passed over: 1 by .gitignore, "));
  CHECK(says(preview, " hidden, 1 binary]"));
  CHECK(says(preview, "[left out, the name is not UTF-8: bad"));
  json real = arguments;
  real["preview"] = false;
  REQUIRE(done(files.server.call("file_edit", real)));
  CHECK(files.sh("cat /app/a.txt /app/ignored.txt") == "new\nold");
}

TEST_CASE("edit: a preview of edits counts as read for them") {
  Files files;
  (void)files.sh("cd /app && echo one > a && echo two > b");
  const json edits = {{{"filePath", "a"}, {"oldString", "one"}, {"newString", "1"}},
                      {{"filePath", "b"}, {"oldString", "two"}, {"newString", "2"}}};
  REQUIRE(done(files.server.call("file_edit", {{"edits", edits}, {"preview", true}})));
  (void)files.sh("echo two two > /app/b");
  const json changed = files.server.call("file_edit", {{"edits", edits}});
  CHECK(error_code(changed) == "file_changed");
  CHECK(says(changed, "File has changed since the preview: /app/b"));
  (void)files.sh("echo two > /app/b");
  REQUIRE(done(files.server.call("file_edit", {{"edits", edits}, {"preview", true}})));
  REQUIRE(done(files.tools.edit("a", "one", "1", {{"expectedRevision", ""}})));
  CHECK(files.sh("cat /app/a") == "1");
}

TEST_CASE("search: an unreadable directory is named with a usable path") {
  Files files({"--init", "--cap-drop", "DAC_OVERRIDE"});
  (void)files.sh("mkdir -p /app/sub/x && echo needle > /app/sub/y && chmod 0 /app/sub/x");
  CHECK(says(files.tools.grep("needle", "sub"), "\n[could not read sub/x: Permission denied]"));
  CHECK(says(files.tools.glob("*", {{"path", "/app/sub"}}), "\n[could not read sub/x: Permission denied]"));
}
