#include "wire/file_search_messages.hpp"

#include <doctest/doctest.h>

#include "unit/wire/messages.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

json totals() {
  return {{"path", "/a"}, {"total", 9},   {"shown", 1},      {"more", true},
          {"hidden", 2},  {"ignored", 3}, {"unreadable", 4}, {"unreadablePaths", {"b: Permission denied"}}};
}

json grep_answer() {
  json head = totals();
  head.update({{"matches", 5}, {"filesWithMatches", 6}, {"filesSearched", 7}, {"binary", 8}, {"notes", {"note"}}});
  return head;
}

json found() {
  return {{"files", {{{"path", "b"}, {"matches", 2}, {"lines", {{1, 3, "text", 4, 5}, {2, 0, "context", 0, 0}}}}}}};
}

}  // namespace

TEST_CASE("file.list: request and answer survive the round trip, bad fields are named") {
  json request = {{"op", "file.list"},    {"path", "/a"},    {"ignore", {"*.o"}}, {"depth", 2},
                  {"honourIgnore", true}, {"details", true}, {"offset", 3},       {"max", 4}};
  CHECK(wire::to_json(message<wire::FileListRequest>(request)) == request);
  check_fields<wire::FileListRequest>(request, "");
  request["ignore"].push_back(1);
  CHECK(bad_path<wire::FileListRequest>(request) == "ignore[1]");
  const wire::FileEntry entry{"name", wire::FileType::regular, 1, 2, 0644U, ""};
  const auto listing = message<wire::FileListing>(totals(), wire::encode(entry));
  REQUIRE(listing.entries.size() == 1);
  CHECK(listing.entries[0].path == "name");
  CHECK(listing.totals.ignored == 3);
  CHECK(wire::to_json(listing) == totals());
  check_fields<wire::FileListing>(totals(), wire::encode(entry));
  CHECK(bad_path<wire::FileListing>(totals(), "file x") == "body");
}

TEST_CASE("file.glob: the request survives the round trip, bad fields are named") {
  const json request = {{"op", "file.glob"},     {"path", "/a"},   {"pattern", "*.c"}, {"newestFirst", true},
                        {"honourIgnore", false}, {"hidden", true}, {"offset", 3},      {"max", 4}};
  CHECK(wire::to_json(message<wire::FileGlobRequest>(request)) == request);
  check_fields<wire::FileGlobRequest>(request, "");
}

TEST_CASE("file.grep: the request survives the round trip, bad fields are named") {
  json request = {{"op", "file.grep"},   {"path", "/a"},         {"pattern", "x"},    {"literal", true},
                  {"ignoreCase", true},  {"wholeWord", true},    {"multiLine", true}, {"include", {"*.c"}},
                  {"exclude", {"*.h"}},  {"honourIgnore", true}, {"hidden", true},    {"context", 1},
                  {"output", "content"}, {"offset", 2},          {"max", 3}};
  for (const std::string_view output : wire::k_names<wire::GrepOutput>) {
    request["output"] = output;
    CHECK(wire::to_json(message<wire::FileGrepRequest>(request)) == request);
  }
  check_fields<wire::FileGrepRequest>(request, "");
  request["output"] = "lines";
  CHECK(bad_path<wire::FileGrepRequest>(request) == "output");
}

TEST_CASE("file.grep: the answer survives the round trip, bad fields are named") {
  const auto result = message<wire::FileGrepResult>(grep_answer(), found().dump());
  REQUIRE(result.files.size() == 1);
  REQUIRE(result.files[0].lines.size() == 2);
  CHECK(result.files[0].lines[0].matches);
  CHECK(result.files[0].lines[0].column == 3);
  CHECK(result.files[0].lines[0].cut_after == 5);
  CHECK_FALSE(result.files[0].lines[1].matches);
  CHECK(wire::to_json(result) == grep_answer());
  wire::FoundFilesBody body;
  CHECK(body.add(result.files[0]));
  CHECK(body.take() == found().dump());
  check_fields<wire::FileGrepResult>(grep_answer(), found().dump(), {"matches"});
  const auto path_with = [](const json& list) { return bad_path<wire::FileGrepResult>(grep_answer(), list.dump()); };
  json forged = found();
  forged["files"][0]["lines"][1][3] = "x";
  CHECK(path_with(forged) == "files[0].lines[1][3]");
  forged["files"][0]["lines"][1] = {1, 2};
  CHECK(path_with(forged) == "files[0].lines[1]");
  forged["files"][0].erase("matches");
  CHECK(path_with(forged) == "files[0].matches");
  CHECK(path_with(json::object()) == "files");
  CHECK(path_with(json::array()) == "body");
}

TEST_CASE("file.grep: a match that begins in an earlier line is not context") {
  wire::FoundFilesBody body;
  REQUIRE(body.add({"f", 1, {{2, true, 0, "rest of the match"}}}));
  const auto result = message<wire::FileGrepResult>(grep_answer(), body.take());
  CHECK(result.files[0].lines[0].matches);
}

TEST_CASE("search messages: a full body accepts no more entries") {
  wire::FoundBody body;
  const std::string half(wire::k_max_found_bytes / 2, 'x');
  CHECK(body.add(half));
  CHECK(body.add(half));
  CHECK_FALSE(body.add("too much"));
  CHECK(body.count() == 2);
  CHECK(body.take().size() == wire::k_max_found_bytes);
}
