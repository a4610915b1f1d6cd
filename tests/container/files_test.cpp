#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "support/field.hpp"
#include "support/file_tools.hpp"
#include "util/encoding.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

std::string revision_in(const json& result) {
  return field(fields_of(result), "revision");
}

std::set<std::string> names_in(const json& entries) {
  std::set<std::string> names;
  for (const json& entry : entries) {
    names.insert(field(entry, "path").get<std::string>());
  }
  return names;
}

// Minimal images.
const std::string k_png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const std::string k_gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
const std::string k_webp = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==";
const std::string k_jpeg =
    "/9j/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/"
    "yQALCAABAAEBAREA/8wABgAQEAX/2gAIAQEAAD8A0s8g/9k=";

}  // namespace

TEST_CASE("file_read: pages have true line numbers, from either end") {
  Files files;
  (void)files.container.sh("seq -f 'row %g' 1 5000 > /app/rows");
  const json first = files.tools.read("rows");
  REQUIRE(done(first));
  CHECK(says(first, "\n1\trow 1\n"));
  CHECK(field(fields_of(first), "totalLines") == 5000);
  const int next = field(fields_of(first), "nextOffset");
  CHECK(says(first, fmt::format("\n{0}\trow {0}\n", next)));
  CHECK(says(first, fmt::format("offset: {} reads on", next)));
  const json second = files.tools.read("rows", {{"offset", 2000}, {"limit", 2}});
  CHECK(field(fields_of(second), "content") == "row 2001\nrow 2002\n");
  CHECK(field(fields_of(second), "firstLine") == 2001);
  const json last = files.tools.read("/app/rows", {{"offset", -2}});
  CHECK(field(fields_of(last), "content") == "row 4999\nrow 5000\n");
  CHECK(says(last, "\n5000\trow 5000\n"));
  CHECK(field(fields_of(last), "more") == false);
  CHECK(revision_in(first) == revision_in(last));
  CHECK(says(first, "revision " + revision_in(first).substr(0, 8)));
  CHECK(says(files.tools.read("rows", {{"offset", 9000}}), "the file has 5000"));
}

TEST_CASE("file_read: long lines, empty files and missing newlines are reported") {
  Files files;
  (void)files.container.sh("head -c 5000 /dev/zero | tr '\\0' x > /app/long; : > /app/empty");
  const json cut = files.tools.read("long");
  CHECK(says(cut, "[3000 more characters: offset: 0, column: 2000]"));
  CHECK(says(cut, "no newline at its end"));
  CHECK(field(fields_of(cut), "cutLines") == 1);
  CHECK(says(files.tools.read("empty"), "the file is empty"));
}

TEST_CASE("files: a text of any encoding is edited and written back exactly") {
  Files files;
  const auto utf16 = [](const std::string& ascii) {
    std::string bytes = "\xFF\xFE";
    for (const char c : ascii) {
      bytes += {c, '\0'};
    }
    return bytes;
  };
  struct Sample {
    std::string bytes;
    std::string edited;
    std::string encoding;
    std::string ends;
  };
  for (const Sample& sample :
       std::vector<Sample>{{"one\ntwo\n", "one\n2\n", "utf-8", "lf"},
                           {"one\r\ntwo\r\n", "one\r\n2\r\n", "utf-8", "crlf"},
                           {"one\r\ntwo\n", "one\r\n2\n", "utf-8", "mixed"},
                           {"\xEF\xBB\xBFone\r\ntwo", "\xEF\xBB\xBFone\r\n2", "utf-8-bom", "crlf"},
                           {utf16("one\r\ntwo\r\n"), utf16("one\r\n2\r\n"), "utf-16le", "crlf"},
                           {"caf\xE9 one\ntwo\x80", "caf\xE9 one\n2\x80", "latin-1", "lf"}}) {
    CAPTURE(sample.encoding);
    files.put("/app/text", sample.bytes);
    const json read = files.tools.read("text");
    REQUIRE(done(read));
    CHECK(field(fields_of(read), "encoding") == sample.encoding);
    CHECK(field(fields_of(read), "lineEnds") == sample.ends);
    REQUIRE(done(files.tools.edit("text", "one\ntwo", "one\n2")));
    CHECK(files.bytes("/app/text") == sample.edited);
    REQUIRE(done(files.tools.undo("text")));
    CHECK(files.bytes("/app/text") == sample.bytes);
    const std::string content = field(fields_of(read), "content");
    REQUIRE(done(files.tools.write("text", "x" + content)));
    CHECK(field(fields_of(files.tools.read("text")), "encoding") == sample.encoding);
  }
}

TEST_CASE("file_read: images are returned as images, other binaries described") {
  Files files;
  for (const auto& [name, data, type] :
       {std::tuple("a.png", k_png, "image/png"), std::tuple("b.gif", k_gif, "image/gif"),
        std::tuple("c.webp", k_webp, "image/webp"), std::tuple("d.jpg", k_jpeg, "image/jpeg")}) {
    REQUIRE(done(files.tools.write(name, data, {{"encoding", "base64"}})));
    const json result = files.tools.read(name);
    REQUIRE(done(result));
    REQUIRE(field(result, "content").size() == 2);
    CHECK(field(result, "content", 1, "type") == "image");
    CHECK(field(result, "content", 1, "mimeType") == type);
    CHECK(field(result, "content", 1, "data") == data);
  }
  (void)files.container.sh("cp /bin/sleep /app/program; tar cf - /etc/passwd 2>/dev/null | gzip > /app/archive");
  const json program = files.tools.read("program");
  CHECK(field(fields_of(program), "kind") == "binary");
  CHECK(says(program, "ELF"));
  CHECK(says(program, "not text"));
  CHECK(says(files.tools.read("archive"), "gzip"));
}

TEST_CASE("file_write: creates a file and its directories") {
  Files files;
  for (const std::string& content : {std::string(), std::string("x"), std::string("no newline"),
                                     std::string("tabs\tand \"quotes\" and $(sh) 日本\n")}) {
    const std::string name = fmt::format("deep/er/{}", content.size());
    REQUIRE(done(files.tools.write(name, content)));
    CHECK(files.bytes("/app/" + name) == content);
  }
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes.push_back(static_cast<char>(i));
  }
  REQUIRE(done(files.tools.write("bytes", to_base64(bytes), {{"encoding", "base64"}, {"mode", "0750"}})));
  CHECK(files.bytes("/app/bytes") == bytes);
  CHECK(files.container.sh("stat -c %a /app/bytes") == "750");
  CHECK(error_code(files.tools.write("other", "not base64!", {{"encoding", "base64"}})) == "bad_arguments");
  CHECK(error_code(files.tools.write("other", "x", {{"mode", "0999"}})) == "bad_arguments");
  CHECK(error_code(files.tools.write("other", "x", {{"encoding", "ebcdic"}})) == "bad_arguments");
  CHECK(files.container.sh("ls -A /app") == "bytes\ndeep");
}

TEST_CASE("guard: an existing file must be read, unchanged, before a write") {
  Files files;
  (void)files.container.sh("printf 'one\\ntwo\\nthree\\n' > /app/file");
  CHECK(error_code(files.tools.write("file", "mine")) == "not_read");
  CHECK(error_code(files.tools.edit("file", "one", "1")) == "not_read");
  const json read = files.tools.read("file");
  (void)files.container.sh("sed -i s/two/2/ /app/file");
  const json refused = files.tools.write("file", "mine");
  CHECK(error_code(refused) == "file_changed");
  CHECK(says(refused, "-two\n+2\n"));
  const json edited = files.tools.edit("file", "three", "3");
  REQUIRE(done(edited));
  CHECK(field(fields_of(edited), "changedByOthers") == true);
  CHECK(says(edited, "-two\n+2\n"));
  CHECK(files.bytes("/app/file") == "one\n2\n3\n");
  CHECK(error_code(files.tools.write("file", "mine")) == "not_read");  // their changes may be shown in part
  REQUIRE(done(files.tools.read("file")));
  REQUIRE(done(files.tools.write("file", "mine\n")));
  REQUIRE(done(files.tools.write("file", "mine again\n")));  // a file that the tools wrote counts as read
  CHECK(error_code(files.tools.write("file", "x", {{"expectedRevision", revision_in(read)}})) == "file_changed");
}

TEST_CASE("guard: an expected revision or a read by an earlier server is enough") {
  Files files;
  (void)files.container.sh("echo hello > /app/file");
  const std::string revision = revision_in(files.tools.read("file"));
  Server second({"-c", files.container.name()});
  second.initialize();
  const FileTools other{second};
  REQUIRE(done(other.write("file", "by the next server\n")));
  CHECK(error_code(files.tools.write("file", "x", {{"expectedRevision", revision}})) == "file_changed");
  (void)files.container.sh("echo hello > /app/again");
  REQUIRE(done(files.tools.write("again", "x", {{"expectedRevision", revision}})));
}

TEST_CASE("guard: a touched or identical file counts as unchanged") {
  Files files;
  (void)files.container.sh("echo same > /app/file");
  (void)files.tools.read("file");
  (void)files.container.sh("rm /app/file; echo same > /app/file; touch -d tomorrow /app/file");
  CHECK(done(files.tools.write("file", "new\n")));
}

TEST_CASE("file_edit: replaces one place or all, and returns a diff") {
  Files files;
  (void)files.container.sh("printf 'a = 1\\nb = 1\\nc = 2\\n' > /app/file");
  (void)files.tools.read("file");
  const json ambiguous = files.tools.edit("file", "= 1", "= 3");
  CHECK(error_code(ambiguous) == "ambiguous_match");
  const json all = files.tools.edit("file", "= 1", "= 3", {{"replaceAll", true}});
  REQUIRE(done(all));
  CHECK(field(fields_of(all), "replacements") == json{2});
  CHECK(says(all, "-a = 1\n-b = 1\n+a = 3\n+b = 3\n"));
  CHECK(error_code(files.tools.edit("file", "", "x")) == "empty_old_text");
  CHECK(error_code(files.tools.edit("file", "c", "c")) == "identical_texts");
  const json near = files.tools.edit("file", "c  = 2", "c = 4");
  CHECK(error_code(near) == "no_match");
  CHECK(says(near, "c = 2"));
  CHECK(says(near, "only in spaces between words"));
  CHECK(files.bytes("/app/file") == "a = 3\nb = 3\nc = 2\n");
}

TEST_CASE("file_edit: several edits in one call are applied all or none") {
  Files files;
  REQUIRE(done(files.tools.write("file", "one\ntwo\n")));
  const auto edits = [&](const json& list) {
    return files.server.call("file_edit", {{"filePath", "file"}, {"edits", list}});
  };
  const json good = {{"oldString", "one"}, {"newString", "1"}};
  const json bad = {{"oldString", "three"}, {"newString", "3"}};
  CHECK(error_code(edits({good, bad})) == "no_match");
  CHECK(files.bytes("/app/file") == "one\ntwo\n");
  CHECK(done(edits({good, {{"oldString", "two"}, {"newString", "2"}}})));
  CHECK(files.bytes("/app/file") == "1\n2\n");
  CHECK(error_code(edits(json::array())) == "bad_arguments");
  CHECK(error_code(edits({{{"oldString", "1"}}})) == "bad_arguments");
  CHECK(error_code(files.server.call(
            "file_edit", {{"filePath", "file"}, {"oldString", "1"}, {"newString", "x"}, {"edits", {good}}})) ==
        "bad_arguments");
}

TEST_CASE("file_undo: undoes changes in order, also an undo and a creation") {
  Files files;
  const json made = files.tools.write("file", "one\n");
  const json changed = files.tools.edit("file", "one", "two");
  const std::string change = field(fields_of(changed), "change");
  CHECK(says(changed, "undo: file_undo change " + change.substr(7, 8)));
  REQUIRE(done(files.tools.undo("file", {{"change", change}})));
  CHECK(files.bytes("/app/file") == "one\n");
  REQUIRE(done(files.tools.undo("file")));
  CHECK(files.bytes("/app/file") == "two\n");
  REQUIRE(done(files.tools.undo("file")));
  const json removed = files.tools.undo("file", {{"change", field(fields_of(made), "change")}});
  REQUIRE(done(removed));
  CHECK(says(removed, "Removed"));
  CHECK(files.container.sh("ls -A /app").empty());
  REQUIRE(done(files.tools.undo("file")));
  CHECK(files.bytes("/app/file") == "one\n");
  (void)files.container.sh("echo theirs >> /app/file");
  const json refused = files.tools.undo("file");
  CHECK(error_code(refused) == "file_changed");
  CHECK(says(refused, "+theirs"));
  CHECK(error_code(files.tools.undo("never")) == "no_such_change");
}

TEST_CASE("file_list: sorted, with types, in pages") {
  Files files;
  (void)files.container.sh(
      "cd /app && mkdir -p dir/sub && printf 12345 > b.txt && chmod 640 b.txt && touch -d '2020-02-03 04:05:06 UTC' "
      "b.txt && "
      "ln -s b.txt a-link && mkfifo pipe && touch .hidden skip.log dir/x dir/sub/y && echo '*.log' > .gitignore");
  const json listing = files.tools.ls(".", {{"details", true}});
  REQUIRE(done(listing));
  CHECK(says(listing, "-rw-r----- 5 2020-02-03T04:05:06Z b.txt"));
  CHECK(says(listing, "a-link -> b.txt"));
  CHECK(says(listing, "dir/\n"));
  CHECK(says(listing, "pipe (fifo)"));
  const json& entries = field(fields_of(listing), "entries");
  CHECK(names_in(entries) ==
        std::set<std::string>{".gitignore", ".hidden", "a-link", "b.txt", "dir", "pipe", "skip.log"});
  const json plain = field(fields_of(files.tools.ls(".")), "entries");
  CHECK(names_in(plain) == names_in(entries));
  CHECK(field(plain, 2) == json{{"path", "a-link"}, {"type", "link"}, {"target", "b.txt"}});
  const json filtered = files.tools.ls(".", {{"ignore", {"*.txt", "dir"}}, {"gitignore", true}});
  CHECK(!names_in(field(fields_of(filtered), "entries")).contains("skip.log"));
  CHECK(!names_in(field(fields_of(filtered), "entries")).contains("b.txt"));
  CHECK(names_in(field(fields_of(files.tools.ls("dir", {{"depth", 2}})), "entries")) ==
        std::set<std::string>{"dir/sub", "dir/sub/y", "dir/x"});
  json paged = json::array();
  for (int offset = 0; offset >= 0;) {
    const json page = files.tools.ls(".", {{"limit", 2}, {"offset", offset}, {"details", true}});
    REQUIRE(done(page));
    paged.insert(paged.end(), field(fields_of(page), "entries").begin(), field(fields_of(page), "entries").end());
    offset = fields_of(page).value("nextOffset", -1);
  }
  CHECK(paged == entries);
}

TEST_CASE("file_glob: finds files by name, newest first on request") {
  Files files;
  (void)files.container.sh(
      "cd /app && mkdir -p src/deep && touch -d '2020-01-01' src/old.ts && touch -d '2021-01-01' src/deep/new.tsx && "
      "touch src/no.js .hidden.ts");
  const json found = files.tools.glob("src/**/*.{ts,tsx}");
  REQUIRE(done(found));
  CHECK(names_in(field(fields_of(found), "files")) == std::set<std::string>{"src/deep/new.tsx", "src/old.ts"});
  CHECK(field(fields_of(files.tools.glob("*.{ts,tsx}", {{"newestFirst", true}})), "files", 0, "path") ==
        "src/deep/new.tsx");
  CHECK(field(fields_of(files.tools.glob("*.ts", {{"hidden", true}})), "total") == 2);
  CHECK(says(files.tools.glob("*.none"), "No files found"));
}

#ifndef __SANITIZE_ADDRESS__  // the sanitized agent needs the glibc of its image
TEST_CASE("files: all tools work in a container without any program") {
  Files files({"--init"}, "dockbridge-test:sh-only");
  (void)files.container.sh("mkdir -p /app && rm -f /bin/*");
  CHECK(done(files.tools.write("dir/file", "one\n")));
  CHECK(done(files.tools.edit("dir/file", "one", "two")));
  CHECK(field(fields_of(files.tools.read("dir/file")), "content") == "two\n");
  CHECK(names_in(field(fields_of(files.tools.ls(".")), "entries")) == std::set<std::string>{"dir"});
  CHECK(field(fields_of(files.tools.grep("t.o", ".")), "total") == 1);
  CHECK(field(fields_of(files.tools.glob("fi*")), "total") == 1);
  CHECK(done(files.tools.undo("dir/file")));
  CHECK(field(fields_of(files.tools.read("dir/file")), "content") == "one\n");
}
#endif

/// Files that take longer to search than any test runs: one text of 64 MiB under a thousand names.
constexpr const char* k_make_endless =
    "mkdir /app/endless && cd /app/endless && yes 'a line of text that holds nothing' | head -c 64M > 0 && "
    "for i in $(seq 1000); do ln 0 $i; done";

TEST_CASE("file_grep: parallel searches do not delay a read, a cancel ends one") {
  Files files;
  (void)files.container.sh(k_make_endless);
  (void)files.container.sh("echo hello > /app/file");
  std::vector<int> greps;
  for (int i = 0; i < 8; ++i) {
    greps.push_back(files.server.start_call("file_grep", {{"pattern", "n[e]+dle$"}, {"path", "/app/endless"}}));
  }
  eventually("the greps run", [&] { return files.container.pids_of(k_file_worker).size() >= 4; });
  CHECK(done(files.tools.read("file")));
  CHECK(done(files.tools.edit("file", "hello", "there")));
  CHECK(files.server.seen.empty());
  for (const int id : greps) {
    files.server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  }
  eventually("only those are left that wait for work",
             [&] { return files.container.pids_of(k_file_worker).size() <= 2; });
  CHECK(done(files.tools.read("file")));
  CHECK(files.server.seen.empty());
  CHECK(files.container.zombies() == 0);
}

TEST_CASE("file_grep: a search ends with its server") {
  Files files;
  (void)files.container.sh(k_make_endless);
  files.server.start_call("file_grep", {{"pattern", "n[e]+dle$"}, {"path", "/app/endless"}});
  eventually("the grep runs", [&] { return !files.container.pids_of(k_file_worker).empty(); });
  files.server.signal(SIGKILL);
  eventually("the grep is gone", [&] { return files.container.pids_of(k_file_worker).empty(); });
}
