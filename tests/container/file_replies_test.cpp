#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "support/field.hpp"
#include "support/file_tools.hpp"
#include "support/png.hpp"
#include "support/repeated.hpp"
#include "util/encoding.hpp"
#include "util/text.hpp"

// Replies of the file tools as a model reads them: only the text.

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr std::size_t k_max_reply_bytes = 10'000;

std::vector<std::string> lines_of(const json& result) {
  std::vector<std::string> lines;
  std::istringstream text(text_of(result));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// First number after `name` in a reply; -1 if there is none.
int number_after(const json& result, const std::string& name) {
  const std::string text = text_of(result);
  const std::size_t at = text.find(name);
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + name.size()));
}

json edit_of(const std::string& path, const std::string& from, const std::string& to) {
  return {{"filePath", path}, {"oldString", from}, {"newString", to}};
}

}  // namespace

TEST_CASE("paths: a path in a reply can be read as it stands") {
  Files files;
  (void)files.sh(
      "cd /app && mkdir -p src/deep 'with space' && echo needle > src/one.ts && echo needle > src/deep/two.ts && "
      "echo needle > 'with space/three.ts' && ln -s src linked && mkdir -p /srv/other && echo needle > "
      "/srv/other/four.ts");
  for (const char* path : {"", ".", "src", "./src/", "/app/src", "/app", "/app/", "linked", "src/../src", "src/deep/..",
                           "/srv", "/srv/../srv/other", "../srv", "with space"}) {
    CAPTURE(path);
    const json where = *path == '\0' ? json::object() : json{{"path", path}};
    json grep_arguments = where;
    grep_arguments.update({{"pattern", "needle"}, {"output", "files"}});
    json glob_arguments = where;
    glob_arguments["pattern"] = "*.ts";
    json ls_arguments = where;
    ls_arguments["depth"] = 3;
    int read = 0;
    for (const json& reply :
         {files.server.call("file_grep", grep_arguments), files.server.call("file_glob", glob_arguments),
          files.server.call("file_ls", ls_arguments)}) {
      for (const std::string& line : lines_of(reply)) {
        if (line.ends_with(".ts")) {
          const json content = files.tools.read(line);
          CAPTURE(line);
          REQUIRE(done(content));
          CHECK(says(content, "1\tneedle\n"));
          ++read;
        }
      }
      for (const json& entry :
           fields_of(reply).value(fields_of(reply).contains("entries") ? "entries" : "files", json())) {
        if (field(entry, "path").get<std::string>().ends_with(".ts")) {
          REQUIRE(done(files.tools.read(field(entry, "path"))));
        }
      }
    }
    CHECK(read >= 3);
  }
  CHECK(text_of(files.tools.ls("src")) == "src/deep/\nsrc/one.ts");
  CHECK(text_of(files.tools.ls("/app/src/deep")) == "src/deep/two.ts");
  CHECK(text_of(files.tools.ls("/srv/other")) == "/srv/other/four.ts");
  CHECK(text_of(files.tools.grep("needle", "src/one.ts")) == "src/one.ts\n1: needle\n[1 matching line in 1 of 1 file]");
  CHECK(text_of(files.tools.grep("absent", "src")) == "No matches in 2 files");
  CHECK(text_of(files.tools.grep("needle", "src", {{"output", "count"}})) ==
        "src/deep/two.ts: 1\nsrc/one.ts: 1\n[2 of 2 files]");
  CHECK(text_of(files.tools.glob("two.*", {{"path", "/app"}})) == "src/deep/two.ts");
  (void)files.sh("mkdir /app/empty");
  CHECK(text_of(files.tools.ls("empty")) == "No entries in empty");
}

TEST_CASE("sizes: a page of a long file starts with how to read the next one") {
  Files files;
  (void)files.sh(
      "cd /app && seq -f 'row %g of a file that is much longer than a reply' 1 900 > rows && yes '' | head -n 4000 > "
      "short");
  std::string read;
  int offset = 0;
  int pages = 0;
  while (offset >= 0 && pages < 50) {
    const json page = files.tools.read("rows", {{"offset", offset}});
    REQUIRE(done(page));
    CHECK(text_of(page).size() <= k_max_reply_bytes);
    for (const std::string& line : lines_of(page)) {
      read += line.starts_with('[') ? "" : line.substr(line.find('\t') + 1) + "\n";
    }
    const int next = number_after(page, "offset: ");
    if (next >= 0) {
      CHECK(text_of(page).starts_with(
          fmt::format("[lines {}-{} of 900; offset: {} reads on]\n", offset + 1, next, next)));
      CHECK(text_of(page).find(fmt::format("\n[lines {}-{} of 900; offset: {} reads on; revision ", offset + 1, next,
                                           next)) != std::string::npos);
    }
    offset = next;
    ++pages;
  }
  CHECK(pages > 3);
  CHECK(read == files.sh("cat /app/rows") + "\n");
  // 1,500 lines fit if they are short.
  const json many = files.tools.read("short");
  CHECK(text_of(many).size() <= k_max_reply_bytes);
  CHECK(number_after(many, "offset: ") == 1500);
  // An explicit limit raises the bound.
  const json all = files.tools.read("rows", {{"limit", 900}});
  CHECK(text_of(all).size() > 5 * k_max_reply_bytes / 2);
  CHECK(text_of(all).starts_with("1\trow 1 "));
  CHECK(!says(all, "offset:"));
  const json part = files.tools.read("rows", {{"limit", 2}, {"offset", 1}});
  CHECK(text_of(part).starts_with("2\trow 2 "));
  CHECK(says(part, "\n[lines 2-3 of 900; offset: 3 reads on; revision "));
}

TEST_CASE("sizes: a small file has one short line besides its text") {
  Files files;
  (void)files.sh("printf 'one\\ntwo\\n' > /app/file");
  CHECK(std::regex_match(text_of(files.tools.read("file")), std::regex("1\tone\n2\ttwo\n\\[revision [0-9a-f]{8}\\]")));
}

TEST_CASE("sizes: long lines are cut, and the reply names the arguments that read the rest") {
  Files files;
  (void)files.sh("cd /app && (echo first; seq -s, 1 12000; echo last) > wide");
  const std::string line = files.sh("sed -n 2p /app/wide");
  json page = files.tools.read("wide");
  CHECK(text_of(page).size() <= k_max_reply_bytes);
  CHECK(says(page, "3\tlast\n"));
  std::string read = lines_of(page)[1].substr(2, 2000);
  for (int pages = 0; number_after(page, "column: ") >= 0 && pages < 50; ++pages) {
    CHECK(number_after(page, "offset: ") == 1);
    CHECK(number_after(page, "column: ") == static_cast<int>(read.size()));
    page = files.tools.read("wide", {{"offset", 1}, {"column", read.size()}});
    REQUIRE(done(page));
    CHECK(text_of(page).size() <= k_max_reply_bytes);
    const std::string rest = lines_of(page)[0].substr(2);
    read += rest.substr(0, rest.find("... ["));
  }
  CHECK((read == line));
  CHECK(says(files.tools.read("wide", {{"offset", 1}, {"column", 1'000'000}}), "line 2 ends before column 1000000"));
  CHECK(error_code(files.tools.read("wide", {{"column", -1}})) == "bad_arguments");
}

TEST_CASE("sizes: listings and searches stay short unless an argument raises them") {
  Files files;
  (void)files.sh(
      "mkdir /app/many && cd /app/many && for i in $(seq 1000 1499); do echo \"a needle in a haystack of $i\" > "
      "file-with-a-rather-long-name-$i.txt; done");
  const auto check = [&](const std::string& tool, json arguments, const std::string& limit) {
    CAPTURE(tool);
    std::set<std::string> names;
    int offset = 0;
    for (int pages = 0; offset >= 0 && pages < 100; ++pages) {
      arguments["offset"] = offset;
      const json page = files.server.call(tool, arguments, seconds(60));
      REQUIRE(done(page));
      CHECK(text_of(page).size() <= k_max_reply_bytes);
      for (const std::string& line : lines_of(page)) {
        if (line.starts_with("many/")) {
          CHECK(names.insert(line).second);
        }
      }
      const int next = number_after(page, "offset: ");
      CHECK((next > offset || next == -1));
      CHECK((next == -1 || text_of(page).starts_with("[")));
      offset = next;
    }
    CHECK(names.size() == 500);
    arguments["offset"] = 0;
    arguments[limit] = 500;
    const json all = files.server.call(tool, arguments, seconds(60));
    CHECK(text_of(all).size() > 2 * k_max_reply_bytes);
    CHECK(!says(all, "offset:"));
  };
  check("file_ls", {{"path", "many"}}, "limit");
  check("file_glob", {{"path", "many"}, {"pattern", "*.txt"}}, "maxResults");
  check("file_grep", {{"path", "many"}, {"pattern", "needle"}}, "maxResults");
}

TEST_CASE("revisions: the 8 digits that replies show are accepted, others are not") {
  Files files;
  const json made = files.tools.write("file", "one\n");
  const std::string revision = field(fields_of(made), "revision");
  const std::string change = field(fields_of(made), "change").get<std::string>().substr(7, 8);
  CHECK(text_of(made) ==
        fmt::format("Created file (4 bytes)\n[revision {}; undo: file_undo change {}]", revision.substr(0, 8), change));
  REQUIRE(done(files.tools.edit("file", "one", "two", {{"expectedRevision", revision.substr(0, 8)}})));
  CHECK(error_code(files.tools.edit("file", "two", "three", {{"expectedRevision", revision.substr(0, 8)}})) ==
        "file_changed");
  CHECK(error_code(files.tools.edit("file", "two", "three", {{"expectedRevision", revision.substr(0, 7)}})) ==
        "bad_arguments");
  CHECK(error_code(files.tools.edit("file", "two", "three", {{"expectedRevision", "not hexadecimal"}})) ==
        "bad_arguments");
  CHECK(error_code(files.tools.undo("file", {{"change", "1234"}})) == "no_such_change");
  REQUIRE(done(files.tools.undo("file")));
  CHECK(done(files.tools.undo("file", {{"change", change}})));
  CHECK(files.sh("ls /app").empty());
}

TEST_CASE("guard: a file that the client wrote counts as read") {
  Files files;
  REQUIRE(done(files.tools.write("file", "one\n")));
  REQUIRE(done(files.tools.edit("file", "one", "two")));
  REQUIRE(done(files.tools.write("file", "three\n")));
  REQUIRE(done(files.tools.undo("file")));
  REQUIRE(done(files.tools.edit("file", "two", "four")));
  REQUIRE(done(files.server.call("file_edit", {{"edits", {edit_of("file", "four", "five")}}})));
  REQUIRE(done(files.tools.write("file", "six\n")));
  CHECK(files.bytes("/app/file") == "six\n");
  (void)files.sh("echo unread > /app/other");
  CHECK(error_code(files.tools.edit("other", "unread", "read")) == "not_read");
}

TEST_CASE("guard: a page is enough for an edit, not to write the whole file") {
  Files files;
  (void)files.sh("seq 1 4000 > /app/rows");
  REQUIRE(done(files.tools.read("rows", {{"limit", 1}})));
  const json refused = files.tools.write("rows", "all\n");
  CHECK(error_code(refused) == "not_read");
  CHECK(says(refused, "Read the rest of the file first (offset: 1)"));
  REQUIRE(done(files.tools.edit("rows", "3999\n", "x\n")));
  // The lines of a reply count, not those that the agent had to read for it.
  json page = files.tools.read("rows");
  const int next = number_after(page, "offset: ");
  CHECK(number_after(files.tools.write("rows", "all\n"), "(offset: ") == next);
  for (int offset = next; offset >= 0; offset = number_after(page, "offset: ")) {
    page = files.tools.read("rows", {{"offset", offset}});
    REQUIRE(done(page));
  }
  CHECK(done(files.tools.write("rows", "all\n")));
}

TEST_CASE("guard: with --edit-guard match, a unique text replaces a prior read") {
  Files files({"--init"}, "dockbridge-test:slim", {"--edit-guard", "match"});
  (void)files.sh("printf 'one two two\\n' > /app/file");
  CHECK(error_code(files.tools.write("file", "all\n")) == "not_read");
  CHECK(error_code(files.tools.edit("file", "two", "2", {{"replaceAll", true}})) == "not_read");
  CHECK(error_code(files.tools.edit("file", "two", "2")) == "ambiguous_match");
  REQUIRE(done(files.tools.edit("file", "one", "1")));
  CHECK(files.bytes("/app/file") == "1 two two\n");
}

TEST_CASE("edit: the reply to a large change is bounded, and states what is left out") {
  Files files;
  (void)files.sh(
      "cd /app && seq -f 'the old text of line %g' 900 > a && "
      "seq -f 'the old text of line %g, and then more' 450 | sed 'a between' > b");
  for (const char* path : {"a", "b"}) {
    CAPTURE(path);
    REQUIRE(done(files.tools.read(path)));
    const json edited = files.tools.edit(path, "old", "new", {{"replaceAll", true}});
    REQUIRE(done(edited));
    CHECK(text_of(edited).size() <= k_max_reply_bytes);
    CHECK(text_of(edited).size() > 7000);
    CHECK(says(edited, " changed lines left out; file_read shows the file]"));
    const json undone = files.tools.undo(path);
    REQUIRE(done(undone));
    CHECK(text_of(undone).size() <= k_max_reply_bytes);
  }
  // Changes by others, too.
  (void)files.sh("cd /app && seq -f 'their text of line %g' 800 > head && cat head a > both && mv both a");
  const json stale =
      files.tools.edit("a", "the old text of line 7\n", std::string(9000, 'x') + "\n" + repeated("a new line\n", 800));
  REQUIRE(done(stale));
  CHECK(text_of(stale).size() <= k_max_reply_bytes);
  CHECK(says(stale, "others had changed the file"));
  CHECK(says(stale, "+their text of line 1\n"));
  CHECK(says(stale, "+a new line\n"));
  CHECK(says(stale, "[the rest of this note is left out; file_read shows the file]"));
}

TEST_CASE("edit: without a text, edits and glob are named") {
  Files files;
  const json refused = files.server.call("file_edit", {{"filePath", "x"}});
  CHECK(error_code(refused) == "bad_arguments");
  CHECK(says(refused, "Missing argument: oldString"));
  CHECK(says(refused, "or with edits"));
  CHECK(says(refused, "With glob in place of filePath"));
}

TEST_CASE("edit: several files change all or none") {
  Files files;
  (void)files.sh("mkdir -p /app/a /app/b && cd /app && echo one > a/x && echo two > b/y && echo three > z");
  for (const char* path : {"a/x", "b/y", "z"}) {
    (void)files.tools.read(path);
  }
  const json edits = {edit_of("a/x", "one", "1"), edit_of("b/y", "two", "2"), edit_of("a/x", "1", "11")};
  const json edited = files.server.call("file_edit", {{"edits", edits}});
  REQUIRE(done(edited));
  CHECK(says(edited, "Edited 2 files."));
  CHECK(std::regex_search(text_of(edited), std::regex("\na/x \\[revision [0-9a-f]{8}; change [0-9a-f]{8}\\]\n@@ ")));
  CHECK(says(edited, "\n-one\n+11"));
  CHECK(field(fields_of(edited), "files").size() == 2);
  CHECK(files.sh("cat /app/a/x /app/b/y") == "11\n2");
  // Edits without a path use the path of the call.
  REQUIRE(done(files.server.call(
      "file_edit",
      {{"filePath", "z"}, {"edits", {{{"oldString", "three"}, {"newString", "3"}}, edit_of("b/y", "2", "22")}}})));
  CHECK(files.sh("cat /app/z /app/b/y") == "3\n22");

  const json failed =
      files.server.call("file_edit", {{"edits", {edit_of("a/x", "11", "x"), edit_of("b/y", "no", "x")}}});
  CHECK(error_code(failed) == "no_match");
  CHECK(says(failed, "/app/b/y: oldString is not in the file"));
  CHECK(says(failed, "No file was changed"));
  CHECK(files.sh("cat /app/a/x /app/b/y") == "11\n22");
  for (const json& bad : std::vector<json>{
           {{"edits", {{{"oldString", "a"}, {"newString", "b"}}}}},
           {{"edits", {edit_of("", "a", "b")}}},
           {{"edits", json::array()}},
           {{"edits", "text"}},
           {{"edits", {edit_of("a/x", "11", "x"), edit_of("z", "3", "x")}}, {"expectedRevision", "0123456789"}},
           {{"edits", {edit_of("a/x", "11", "x")}}, {"oldString", "x"}},
           {{"oldString", "11"}, {"newString", "x"}}}) {
    CAPTURE(bad.dump());
    CHECK(error_code(files.server.call("file_edit", bad)) == "bad_arguments");
  }
  CHECK(error_code(files.server.call(
            "file_edit", {{"edits", {edit_of("a/x", "11", "x"), edit_of("none", "3", "x")}}})) == "no_such_file");
  CHECK(files.sh("cat /app/a/x") == "11");
}

TEST_CASE("edit: a glob replaces everywhere, after a preview") {
  Files files;
  (void)files.sh(
      "mkdir -p /app/src/deep && cd /app/src && printf 'old old\\n' > a.ts && printf 'one\\r\\nold\\r\\n' > deep/b.ts "
      "&& "
      "echo none > c.ts && echo old > d.js && printf 'old\\0' > e.ts");
  const json arguments = {{"glob", "src/**/*.ts"}, {"oldString", "old"}, {"newString", "new"}};
  const json refused = files.server.call("file_edit", arguments);
  CHECK(error_code(refused) == "not_read");
  CHECK(says(refused, "preview: true"));
  json preview_arguments = arguments;
  preview_arguments["preview"] = true;
  const json preview = files.server.call("file_edit", preview_arguments);
  REQUIRE(done(preview));
  CHECK(says(preview, "Preview: 3 replacements in 2 files."));
  CHECK(says(preview, "\nsrc/a.ts [2 replacements]\n"));
  CHECK(says(preview, "\n-old old\n+new new"));
  CHECK(files.sh("cat /app/src/a.ts") == "old old");
  const json changed = files.server.call("file_edit", arguments);
  REQUIRE(done(changed));
  CHECK(says(changed, "Edited 2 files."));
  CHECK(files.bytes("/app/src/a.ts") == "new new\n");
  CHECK(files.bytes("/app/src/deep/b.ts") == "one\r\nnew\r\n");
  CHECK(files.bytes("/app/src/d.js") == "old\n");
  const json absent = files.server.call("file_edit", preview_arguments);
  CHECK(error_code(absent) == "no_match");
  CHECK(says(absent, "oldString is not in the 3 files that match src/**/*.ts"));
  const json unmatched =
      files.server.call("file_edit", {{"glob", "scr/*.ts"}, {"oldString", "old"}, {"newString", "new"}});
  CHECK(error_code(unmatched) == "no_match");
  CHECK(says(unmatched, "No text file matches scr/*.ts"));
  CHECK(says(unmatched, "Correct the glob."));
  // Lines with LF for a file with CR LF. The glob is absolute, below the workdir.
  const json lines = {{"glob", "/app/src/**"}, {"oldString", "one\nnew"}, {"newString", "1\n2"}};
  json lines_preview = lines;
  lines_preview["preview"] = true;
  REQUIRE(done(files.server.call("file_edit", lines_preview)));
  (void)files.sh("echo more >> /app/src/deep/b.ts");
  REQUIRE(done(files.server.call("file_edit", lines)));  // its own edit counts as read, and a single place is safe
  CHECK(files.bytes("/app/src/deep/b.ts") == "1\r\n2\r\nmore\n");
  for (const json& more : std::vector<json>{{{"filePath", "src/a.ts"}},
                                            {{"edits", {edit_of("a", "b", "c")}}},
                                            {{"expectedRevision", "0123456789"}},
                                            {{"glob", ""}},
                                            {{"oldString", "\n\n"}},
                                            {{"preview", "perhaps"}}}) {
    json bad = arguments;
    bad.update(more);
    CAPTURE(bad.dump());
    CHECK(error_code(files.server.call("file_edit", bad)) == "bad_arguments");
  }
  CHECK(error_code(files.server.call("file_edit", {{"glob", "src/[*"}, {"oldString", "x"}, {"newString", "y"}})) ==
        "bad_glob");
}

TEST_CASE("edit: a glob may lead anywhere, within the root if there is one") {
  const auto replace = [](const Files& files, const std::string& glob) {
    json arguments = {{"glob", glob}, {"oldString", "old"}, {"newString", "new"}, {"preview", true}};
    json replaced = files.tools.server.call("file_edit", arguments);
    arguments["preview"] = false;
    return replaced.value("isError", false) ? replaced : files.tools.server.call("file_edit", arguments);
  };
  const std::string make = "mkdir -p /srv/a /app/b && echo old | tee /srv/a/x.conf ~/y.conf > /app/b/z.conf";
  Files files;
  (void)files.sh(make);
  for (const char* glob : {"/srv/**/*.conf", "~/*.conf", "../app/b/*.conf"}) {
    CAPTURE(glob);
    CHECK(says(replace(files, glob), "Edited 1 file."));
  }
  CHECK(files.sh("cat /srv/a/x.conf ~/y.conf /app/b/z.conf") == "new\nnew\nnew");
  Files confined({"--init"}, "dockbridge-test:slim", {"--root", "/app/b"});
  (void)confined.sh(make);
  for (const char* glob : {"/srv/**/*.conf", "~/*.conf", "../../srv/a/*.conf"}) {
    CAPTURE(glob);
    CHECK(error_code(replace(confined, glob)) == "outside_root");
  }
  CHECK(says(replace(confined, "/app/b/*.conf"), "Edited 1 file."));
  CHECK(confined.sh("cat /srv/a/x.conf ~/y.conf /app/b/z.conf") == "old\nold\nnew");
}

TEST_CASE("edit: a replacement in too many files and its preview are bounded") {
  Files files;
  (void)files.sh("mkdir /app/m && cd /app/m && for i in $(seq 1 400); do echo \"old text $i\" > file-$i.txt; done");
  json arguments = {{"glob", "m/*.txt"}, {"oldString", "old"}, {"newString", "new"}, {"preview", true}};
  const json preview = files.server.call("file_edit", arguments, seconds(120));
  REQUIRE(done(preview));
  CHECK(says(preview, "400 replacements in 400 files"));
  CHECK(says(preview, "left out]"));
  CHECK(text_of(preview).size() <= k_max_reply_bytes);
  arguments["preview"] = false;
  const json changed = files.server.call("file_edit", arguments, seconds(120));
  REQUIRE(done(changed));
  CHECK(text_of(changed).size() <= k_max_reply_bytes);
  CHECK(files.sh("grep -l new /app/m/* | wc -l") == "400");
  (void)files.sh("cd /app/m && for i in $(seq 401 501); do echo \"new text $i\" > file-$i.txt; done");
  arguments.update({{"oldString", "new"}, {"newString", "old"}});
  CHECK(error_code(files.server.call("file_edit", arguments, seconds(120))) == "too_many_files");
}

TEST_CASE("images: large ones are scaled down, with the sizes in the reply") {
  Files files;
  const std::string large = to_base64(plain_png(2000, 100));
  REQUIRE(done(files.tools.write("large.png", large, {{"encoding", "base64"}})));
  const json scaled = files.tools.read("large.png");
  REQUIRE(done(scaled));
  CHECK(says(scaled, "large.png is image/png, "));
  CHECK(says(scaled, ", scaled from 2000x100 to 1568x78"));
  REQUIRE(field(scaled, "content").size() == 2);
  CHECK(field(scaled, "content", 1, "mimeType") == "image/png");
  const auto bytes = from_base64(field(scaled, "content", 1, "data").get<std::string>());
  REQUIRE(bytes);
  CHECK(bytes->substr(16, 8) == big_endian(1568) + big_endian(78));
  const json original = files.tools.read("large.png", {{"scale", false}});
  CHECK(field(original, "content", 1, "data") == large);
  CHECK(!says(original, "scaled"));
  // The largest image that is not scaled.
  const std::string fits = to_base64(plain_png(1568, 2));
  REQUIRE(done(files.tools.write("fits.png", fits, {{"encoding", "base64"}})));
  CHECK(field(files.tools.read("fits.png"), "content", 1, "data") == fits);
}

TEST_CASE("images: large files of few pixels are shown smaller, and a long header is found") {
  Files files;
  std::mt19937 random(1);
  const std::string noise = png(1200, 1000, [&](int, int) {
    return Colour{static_cast<unsigned char>(random()), static_cast<unsigned char>(random()),
                  static_cast<unsigned char>(random())};
  });
  REQUIRE(noise.size() > 3'500'000);
  REQUIRE(done(files.tools.write("noise.png", to_base64(noise), {{"encoding", "base64"}})));
  const json shown = files.tools.read("noise.png");
  REQUIRE(done(shown));
  CHECK(says(shown, ", shown as image/jpeg of "));
  REQUIRE(field(shown, "content").size() == 2);
  const auto jpeg = from_base64(field(shown, "content", 1, "data").get<std::string>());
  REQUIRE(jpeg);
  // A comment before the size, and 17 MB after the image.
  const std::string comment = "\xFF\xFE" + big_endian(60'002, 2) + std::string(60'000, 'c');
  REQUIRE(done(files.tools.write("photo.jpg", to_base64(jpeg->substr(0, 2) + comment + jpeg->substr(2)),
                                 {{"encoding", "base64"}})));
  (void)files.sh("head -c 17000000 /dev/zero >> /app/photo.jpg");
  const json photo = files.tools.read("photo.jpg");
  REQUIRE(done(photo));
  CHECK(says(photo, ", shown as image/jpeg of "));
  CHECK(field(photo, "content").size() == 2);
  const std::string gif = std::string("GIF89a\x40\x06\x03\x00", 10) + "rest";
  REQUIRE(done(files.tools.write("wide.gif", to_base64(gif), {{"encoding", "base64"}})));
  const json wide = files.tools.read("wide.gif");
  CHECK(says(wide, "1600x3\nIt was not scaled: only PNG and JPEG images are."));
  CHECK(field(wide, "content", 1, "data") == to_base64(gif));
  const std::string webp = std::string("RIFF\x16\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x3F\x06\0\x02\0\0", 30) + "rest";
  REQUIRE(done(files.tools.write("wide.webp", to_base64(webp), {{"encoding", "base64"}})));
  CHECK(says(files.tools.read("wide.webp"), "1600x3\nIt was not scaled: only PNG and JPEG images are."));
}

TEST_CASE("images: bombs and damaged files fail only their own call") {
  Files files;
  const std::string bomb = png_start(30'000, 30'000) + png_chunk("IDAT", zlib_stored("x")) + png_chunk("IEND", "");
  const std::string damaged = plain_png(2000, 50).substr(0, 5000);
  const std::string deep =
      png_start(6000, 6000, 16, 6) + png_chunk("IDAT", zlib_zeros(6000ULL * (1 + 6000 * 8))) + png_chunk("IEND", "");
  REQUIRE(done(files.tools.write("deep.png", to_base64(deep), {{"encoding", "base64"}})));
  CHECK(error_code(files.tools.read("deep.png")) == "out_of_memory");
  REQUIRE(done(files.tools.write("bomb.png", to_base64(bomb), {{"encoding", "base64"}})));
  const json refused = files.tools.read("bomb.png");
  REQUIRE(done(refused));
  CHECK(field(refused, "content").size() == 1);
  CHECK(says(refused, "Image has 30000x30000 pixels"));
  const std::string small = plain_png(40, 40);
  for (const auto& [name, bytes] :
       {std::pair(std::string("large.png"), damaged), std::pair(std::string("start.png"), small.substr(0, 8)),
        std::pair(std::string("small.png"), small.substr(0, small.size() / 2)),
        std::pair(std::string("small.jpg"), std::string("\xFF\xD8\xFF\xC0\0\x0B\x08\0\1\0\1\1\1\x11\0", 15))}) {
    CAPTURE(name);
    REQUIRE(done(files.tools.write(name, to_base64(bytes), {{"encoding", "base64"}})));
    for (const json& more : {json::object(), json{{"scale", false}}}) {
      const json broken = files.tools.read(name, more);
      REQUIRE(done(broken));
      CHECK(field(broken, "content").size() == 1);
      CHECK(
          text_of(broken).starts_with(fmt::format("{} is a damaged or incomplete image (image/{}), {}\n", name,
                                                  name.ends_with("png") ? "png" : "jpeg", human_bytes(bytes.size()))));
      CHECK(!says(broken, "scale: false"));
    }
  }
  // Its data ends before its pixels do.
  const std::string short_data = png_start(2000, 2000) + png_chunk("IDAT", zlib_stored("x")) + png_chunk("IEND", "");
  REQUIRE(done(files.tools.write("short.png", to_base64(short_data), {{"encoding", "base64"}})));
  const json broken = files.tools.read("short.png");
  REQUIRE(done(broken));
  CHECK(field(broken, "content").size() == 1);
  CHECK(says(broken, "cannot be decoded"));
  CHECK(!says(broken, "scale: false"));
  CHECK(files.container.zombies() == 0);
}
