#include "wire/file_change_messages.hpp"

#include <doctest/doctest.h>

#include "unit/wire/messages.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

json change_head(const char* operation) {
  return {
      {"op", operation}, {"path", "/a"}, {"owner", "ann"}, {"expected", std::string(8, 'c')}, {"matchIsEnough", true}};
}

const std::vector<std::string> k_optional = {"expected", "matchIsEnough"};

json change_answer(std::size_t diff_bytes) {
  return {{"path", "/a"},
          {"revision", std::string(32, 'a')},
          {"before", std::string(32, 'b')},
          {"change", "change_0123456789abcdef"},
          {"size", 4},
          {"encoding", "latin-1"},
          {"replacements", {1, 2}},
          {"added", 3},
          {"removed", 4},
          {"diffBytes", diff_bytes},
          {"stale", true},
          {"notes", {"note"}}};
}

json edit_set_head(const json& list) {
  return {{"op", "file.edit_set"}, {"owner", "ann"},   {"listBytes", list.dump().size()},
          {"matchIsEnough", true}, {"preview", false}, {"replacement", true}};
}

json edit_list() {
  return {{"files",
           {{{"path", "/a"}, {"edits", {{1, 2, true}}}},
            {{"path", "/b"}, {"expected", ""}, {"edits", {{3, 0, false}, {1, 1, false}}}}}}};
}

const std::string k_texts = "oNNoldxy";

}  // namespace

TEST_CASE("file.write: the request survives the round trip, bad fields are named") {
  json request = change_head("file.write");
  request.update({{"text", true}, {"encoding", "utf-16be"}, {"mode", 0755}, {"staging", "x"}});
  const std::string body = "content";
  const auto write = message<wire::FileWriteRequest>(request, body);
  CHECK(write.change.expected_revision == "cccccccc");
  CHECK(write.content.encoding == wire::Encoding::utf16_be);
  CHECK(write.content.bytes == body);
  CHECK(wire::to_json(write) == request);
  check_fields<wire::FileWriteRequest>(request, body, {"expected", "matchIsEnough", "encoding", "mode", "staging"});
  const json least = {{"op", "file.write"}, {"path", "/a"}, {"owner", "ann"}, {"text", false}};
  CHECK(wire::to_json(message<wire::FileWriteRequest>(least)) == least);
  request["encoding"] = "ebcdic";
  CHECK(bad_path<wire::FileWriteRequest>(request) == "encoding");
}

TEST_CASE("file.edit: the request survives the round trip, bad fields are named") {
  json request = change_head("file.edit");
  request["edits"] = {{3, 2, true}, {0, 1, false}};
  const auto edit = message<wire::FileEditRequest>(request, "oldNNx");
  REQUIRE(edit.edits.size() == 2);
  CHECK(edit.edits[0].old_text == "old");
  CHECK(edit.edits[0].new_text == "NN");
  CHECK(edit.edits[0].replace_all);
  CHECK(edit.edits[1].new_text == "x");
  const auto again = wire::outgoing(edit);
  CHECK(again.head == request);
  CHECK(again.body() == "oldNNx");
  check_fields<wire::FileEditRequest>(request, "oldNNx", k_optional);
  CHECK(bad_path<wire::FileEditRequest>(request, "oldNN") == "edits[1][1]");
  CHECK(bad_path<wire::FileEditRequest>(request, "ol") == "edits[0][0]");
  request["edits"][1] = {0, 1};
  CHECK(bad_path<wire::FileEditRequest>(request, "oldNNx") == "edits[1]");
  request["edits"][1] = {0, 1, "yes"};
  CHECK(bad_path<wire::FileEditRequest>(request, "oldNNx") == "edits[1][2]");
  request["edits"] = json::array();
  for (std::size_t i = 0; i <= wire::k_max_edits; ++i) {
    request["edits"].push_back({0, 0, false});
  }
  CHECK(bad_path<wire::FileEditRequest>(request, "") == "edits");
}

TEST_CASE("file.edit_set: the request survives the round trip, bad fields are named") {
  const json list = edit_list();
  const json head = edit_set_head(list);
  const std::string body = list.dump() + k_texts;
  const auto set = message<wire::FileEditSetRequest>(head, body);
  REQUIRE(set.files.size() == 2);
  CHECK(set.files[0].edits[0].new_text == "NN");
  CHECK_FALSE(set.files[0].expected_revision);
  CHECK(set.files[1].expected_revision == "");
  CHECK(set.files[1].edits[0].old_text == "old");
  CHECK(set.files[1].edits[1].new_text == "y");
  CHECK(set.is_replacement);
  const auto again = wire::outgoing(set);
  CHECK(again.head == head);
  CHECK(again.body() == body);
  check_fields<wire::FileEditSetRequest>(head, body, {"matchIsEnough"});
  const auto path_with = [](const json& forged, const std::string& texts) {
    return bad_path<wire::FileEditSetRequest>(edit_set_head(forged), forged.dump() + texts);
  };
  CHECK(path_with(list, "oNNoldx") == "files[1].edits[1][1]");
  json forged = list;
  forged["files"][1]["path"] = 1;
  CHECK(path_with(forged, k_texts) == "files[1].path");
  forged["files"] = 1;
  CHECK(path_with(forged, k_texts) == "files");
  CHECK(path_with(json::array(), k_texts) == "body");
  json large = head;
  large["listBytes"] = body.size() + 1;
  CHECK(bad_path<wire::FileEditSetRequest>(large, body) == "listBytes");
}

TEST_CASE("file.edit_set: the limit of edits applies to all files together") {
  json edits = json::array();
  for (std::size_t i = 0; i < wire::k_max_edits; ++i) {
    edits.push_back({0, 0, false});
  }
  json list = {{"files", {{{"path", "/a"}, {"edits", edits}}, {{"path", "/b"}, {"edits", json::array()}}}}};
  CHECK(bad_path<wire::FileEditSetRequest>(edit_set_head(list), list.dump()).empty());
  list["files"][1]["edits"].push_back({0, 0, false});
  CHECK(bad_path<wire::FileEditSetRequest>(edit_set_head(list), list.dump()) == "files[1].edits");
}

TEST_CASE("file.undo, stage, abandon: requests survive a round trip, bad fields are named") {
  json undo = change_head("file.undo");
  undo["change"] = "change_0123456789abcdef";
  CHECK(wire::to_json(message<wire::FileUndoRequest>(undo)) == undo);
  check_fields<wire::FileUndoRequest>(undo, "", {"expected", "matchIsEnough", "change"});
  const json stage = {{"op", "file.stage"}, {"staging", "x"}, {"path", "/a"}, {"first", true}};
  const std::string piece = "piece";
  CHECK(wire::to_json(message<wire::FileStageRequest>(stage, piece)) == stage);
  CHECK(message<wire::FileStageRequest>(stage, piece).bytes == piece);
  check_fields<wire::FileStageRequest>(stage, "");
  const json abandon = {{"op", "file.abandon"}, {"staging", "x"}};
  CHECK(wire::to_json(message<wire::FileAbandonRequest>(abandon)) == abandon);
  check_fields<wire::FileAbandonRequest>(abandon, "", {"staging"});
  CHECK(wire::to_json(wire::FileStageAnswer{}) == json{{"staging", true}});
  CHECK(wire::to_json(wire::FileAbandonAnswer{}) == json::object());
}

TEST_CASE("change: the answer survives the round trip, bad fields are named") {
  const auto file = message<wire::ChangedFile>(change_answer(4), "difftheirs");
  CHECK(file.diff == "diff");
  CHECK(file.stale_changes == "theirs");
  CHECK(file.replacements == std::vector<std::uint64_t>{1, 2});
  const auto again = wire::outgoing(file);
  CHECK(again.head == change_answer(4));
  CHECK(again.body() == "difftheirs");
  check_fields<wire::ChangedFile>(change_answer(4), "diff");
  CHECK(bad_path<wire::ChangedFile>(change_answer(5), "diff") == "diffBytes");
  json forged = change_answer(0);
  forged["replacements"][1] = -1;
  CHECK(bad_path<wire::ChangedFile>(forged) == "replacements[1]");
  forged = change_answer(0);
  forged["notes"] = {"a", 1};
  CHECK(bad_path<wire::ChangedFile>(forged) == "notes[1]");
}

TEST_CASE("changes: the answer survives the round trip, bad fields are named") {
  const auto frame_of = [](const json& list, const std::string& diffs) {
    return std::pair(json{{"listBytes", list.dump().size()}}, list.dump() + diffs);
  };
  const json list = {{"changes", {change_answer(3), change_answer(5)}}};
  const auto [head, body] = frame_of(list, "oneother");
  const auto changes = message<wire::ChangedFiles>(head, body);
  REQUIRE(changes.files.size() == 2);
  CHECK(changes.files[1].diff == "other");
  CHECK(changes.files[1].stale_changes.empty());
  const auto again = wire::outgoing(changes);
  CHECK(again.head == head);
  CHECK(again.body() == body);
  check_fields<wire::ChangedFiles>(head, body);
  const auto path_with = [&](const json& forged, const std::string& diffs) {
    const auto [forged_head, forged_body] = frame_of(forged, diffs);
    return bad_path<wire::ChangedFiles>(forged_head, forged_body);
  };
  CHECK(path_with(list, "oneothe") == "changes[1].diffBytes");
  json forged = list;
  forged["changes"][0]["before"] = "x";
  CHECK(path_with(forged, "oneother") == "changes[0].before");
  CHECK(path_with(json::object(), "") == "changes");
  CHECK(path_with(json::array(), "") == "body");
}
