#include "tools/file_report.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using tools::ShownPaths;

TEST_CASE("shown paths: relative to the workdir below it, absolute elsewhere") {
  const auto shown = [](const std::string& given, const std::string& real, const std::string& path) {
    return ShownPaths(given, "/app", real).of(path);
  };
  CHECK(shown("", "/app", "x") == "x");
  CHECK(shown(".", "/app", "x/y") == "x/y");
  CHECK(shown("", "/app", "") == ".");
  CHECK(shown("src", "/app/src", "x") == "src/x");
  CHECK(shown("./src//deep/", "/app/src/deep", "x") == "src/deep/x");
  CHECK(shown("src", "/app/src", "") == "src");
  CHECK(shown("/app", "/app", "x") == "x");
  CHECK(shown("/app/", "/app", "") == ".");
  CHECK(shown("/app/src", "/app/src", "x") == "src/x");
  CHECK(shown("/application", "/application", "x") == "/application/x");
  CHECK(shown("/srv/", "/srv", "x") == "/srv/x");
  CHECK(shown("/", "/", "x") == "/x");
  CHECK(shown("/", "/", "") == "/");
}

TEST_CASE("shown paths: a link keeps its given name, unless the path leaves it") {
  const auto shown = [](const std::string& given, const std::string& real, const std::string& path) {
    return ShownPaths(given, "/app", real).of(path);
  };
  CHECK(shown("link", "/srv/data", "x") == "link/x");
  CHECK(shown("link/..", "/srv", "x") == "/srv/x");
  CHECK(shown("src/..", "/app", "x") == "x");
  CHECK(shown("../app/src", "/app/src", "x") == "src/x");
  CHECK(shown("~", "/root", "x") == "/root/x");
  CHECK(shown("~/src", "/root/src", "x") == "/root/src/x");
  // A name that could be read as a home directory.
  CHECK(shown("", "/app", "~x") == "./~x");
  CHECK(ShownPaths("src", "/", "/src").of("x") == "src/x");
  CHECK(ShownPaths("/etc", "/", "/etc").of("x") == "etc/x");
}

TEST_CASE("short ids: 8 digits of a revision and of a change") {
  CHECK(tools::short_revision("0123456789abcdef0123456789abcdef") == "01234567");
  CHECK(tools::short_change("change_0123456789abcdef") == "01234567");
  CHECK(tools::short_change("").empty());
  CHECK(tools::short_revision("").empty());
}

TEST_CASE("counted: one item is singular") {
  CHECK(tools::counted(0, "file") == "0 files");
  CHECK(tools::counted(1, "file") == "1 file");
  CHECK(tools::counted(2, "file") == "2 files");
}

TEST_CASE("shown change: diff and notes are bounded together, and the omissions are stated") {
  sandbox::ChangedFile file;
  file.diff = "--- a/x\t\n+++ b/x\t\n@@ -1 +1 @@\n-old\n+new\n";
  file.added = 1;
  file.removed = 1;
  file.notes = {"kept"};
  CHECK(tools::shown_change(file, 9000, "; file_read") == "\n@@ -1 +1 @@\n-old\n+new\nNote: kept");
  file.added = 500;
  file.removed = 500;
  CHECK(tools::shown_change(file, 9000, "") ==
        "\n@@ -1 +1 @@\n-old\n+new\n[998 of 1000 changed lines left out]\nNote: kept");
  file.added = 1000;
  file.removed = 1000;
  for (int i = 1; i < 1000; ++i) {
    file.diff += "-old\n+new\n";
  }
  file.was_stale = true;
  for (int i = 0; i < 500; ++i) {
    file.stale_changes += "+theirs\n";
  }
  for (const std::size_t most : {std::size_t{3000}, std::size_t{9000}}) {
    CAPTURE(most);
    const std::string text = tools::shown_change(file, most, "; file_read shows the file");
    CHECK(text.size() < most + 150);
    CHECK(text.size() > most - 150);
    CHECK(text.find("\n-old\n+new\n") != std::string::npos);
    CHECK(text.find(" of 2000 changed lines left out; file_read shows the file]\nNote: kept\nNote: others had") !=
          std::string::npos);
    CHECK(text.ends_with("\n+theirs\n[the rest of this note is left out; file_read shows the file]"));
  }
}

TEST_CASE("list of changes: all names precede the diffs if not all of them fit") {
  std::vector<tools::ListedChange> changes = {{"a", "a [1]", "\n+one"}, {"b", "b [2]", "\n+two"}};
  CHECK(tools::list_changes(changes, 100) == "\na [1]\n+one\nb [2]\n+two");
  changes.push_back({"c", "c [3]", "\n+" + std::string(100, 'c')});
  CHECK(tools::list_changes(changes, 60) == "\n[1 diff left out]\na [1]\nb [2]\nc [3]\n\na\n+one\n\nb\n+two");
  CHECK(tools::list_changes(changes, 13) == "\n[3 diffs and 1 name left out]\na [1]\nb [2]");
}
