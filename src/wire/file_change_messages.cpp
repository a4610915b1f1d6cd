#include "wire/file_change_messages.hpp"

#include <utility>

#include "util/json_text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

json head_of(Operation operation, const ChangeRequest& change) {
  json head = {{"op", name_of(operation)}, {"path", change.path}, {"owner", change.owner}};
  if (change.expected_revision) {
    head["expected"] = *change.expected_revision;
  }
  if (change.match_is_enough) {
    head["matchIsEnough"] = true;
  }
  return head;
}

std::optional<std::string> optional_text(const Field& head, const char* key) {
  const auto field = head.find(key);
  return field ? std::optional(field->text()) : std::nullopt;
}

bool optional_flag(const Field& head, const char* key) {
  const auto field = head.find(key);
  return field && field->flag();
}

ChangeRequest change_request_from(const Field& head) {
  return {head.at("path").text(), head.at("owner").text(), optional_text(head, "expected"),
          optional_flag(head, "matchIsEnough")};
}

/// Sizes of the texts, which are appended to `texts`.
json sizes_of(const std::vector<TextEdit>& edits, std::string& texts) {
  json sizes = json::array();
  for (const TextEdit& edit : edits) {
    sizes.push_back({edit.old_text.size(), edit.new_text.size(), edit.replace_all});
    texts.append(edit.old_text).append(edit.new_text);
  }
  return sizes;
}

/// Takes the texts of edits from a body, one after the other.
class EditTexts {
 public:
  explicit EditTexts(std::string_view body) : m_rest(body) {}

  /// `sizes` is an array of `[old bytes, new bytes, all]`.
  std::vector<TextEdit> take(const Field& sizes) {
    std::vector<TextEdit> edits;
    for (const Field& size : sizes.elements(k_max_edits - m_count)) {
      const auto parts = size.elements();
      if (parts.size() < 3) {
        size.fail_here();
      }
      std::string old_text = take(parts[0].number(m_rest.size()));
      std::string new_text = take(parts[1].number(m_rest.size()));
      edits.push_back({std::move(old_text), std::move(new_text), parts[2].flag()});
    }
    m_count += edits.size();
    return edits;
  }

 private:
  std::string take(std::size_t bytes) {
    std::string text(m_rest.substr(0, bytes));
    m_rest.remove_prefix(bytes);
    return text;
  }

  std::string_view m_rest;
  std::size_t m_count = 0;
};

json fields_of(const ChangedFile& file) {
  return {{"path", file.path},
          {"revision", file.revision},
          {"before", file.before},
          {"change", file.change},
          {"size", file.size},
          {"encoding", file.encoding},
          {"replacements", file.replacements},
          {"added", file.added},
          {"removed", file.removed},
          {"diffBytes", file.diff.size()},
          {"stale", file.was_stale},
          {"notes", file.notes}};
}

/// Reads a change, and takes its diff from the front of `texts`.
ChangedFile changed_file_from(const Field& head, std::string_view& texts) {
  ChangedFile file;
  file.path = head.at("path").text();
  file.revision = revision_from(head.at("revision"));
  file.before = revision_from(head.at("before"));
  file.change = head.at("change").name(is_change_id);
  file.size = head.at("size").number(k_max_file_bytes);
  file.encoding = encoding_name_from(head.at("encoding"));
  const Field replacements = head.at("replacements");
  for (const Field& count : replacements.elements()) {
    file.replacements.push_back(count.number());
  }
  file.added = head.at("added").number();
  file.removed = head.at("removed").number();
  file.was_stale = head.at("stale").flag();
  file.notes = notes_from(head.at("notes"));
  const std::size_t diff_bytes = head.at("diffBytes").number(texts.size());
  file.diff = texts.substr(0, diff_bytes);
  texts.remove_prefix(diff_bytes);
  return file;
}

}  // namespace

Frame ChangedFile::to_frame() const {
  return {fields_of(*this), diff + stale_changes};
}

ChangedFile ChangedFile::from(const Field& head, std::string_view body) {
  ChangedFile file = changed_file_from(head, body);
  file.stale_changes = body;
  return file;
}

Frame ChangedFiles::to_frame() const {
  json list = {{"changes", json::array()}};
  std::string diffs;
  for (const ChangedFile& file : files) {
    list["changes"].push_back(fields_of(file));
    diffs += file.diff;
  }
  const std::string text = json_text(list);
  return {{{"listBytes", text.size()}}, text + diffs};
}

ChangedFiles ChangedFiles::from(const Field& head, std::string_view body) {
  const std::size_t list_bytes = head.at("listBytes").number(body.size());
  const json list = list_from(body.substr(0, list_bytes));
  std::string_view diffs = body.substr(list_bytes);
  const Field fields(list);
  const Field changes = fields.at("changes");
  ChangedFiles answer;
  for (const Field& change : changes.elements(k_max_set_files)) {
    answer.files.push_back(changed_file_from(change, diffs));
  }
  return answer;
}

json FileWriteRequest::to_json() const {
  json head = head_of(k_operation, change);
  head["text"] = content.is_text;
  if (content.encoding) {
    head["encoding"] = name_of(*content.encoding);
  }
  if (content.mode) {
    head["mode"] = *content.mode;
  }
  if (staging) {
    head["staging"] = *staging;
  }
  return head;
}

FileWriteRequest FileWriteRequest::from(const Field& head, std::string_view body) {
  FileWriteRequest request{change_request_from(head), {body, head.at("text").flag()}, optional_text(head, "staging")};
  if (const auto encoding = head.find("encoding"); encoding && !encoding->text().empty()) {
    request.content.encoding = encoding->word(encoding_from);
  }
  if (const auto mode = head.find("mode")) {
    request.content.mode = static_cast<unsigned>(mode->number(k_max_mode)) & k_permissions;
  }
  return request;
}

Frame FileEditRequest::to_frame() const {
  Frame frame{head_of(k_operation, change), ""};
  frame.head["edits"] = sizes_of(edits, frame.body);
  return frame;
}

FileEditRequest FileEditRequest::from(const Field& head, std::string_view body) {
  return {change_request_from(head), EditTexts(body).take(head.at("edits"))};
}

Frame FileEditSetRequest::to_frame() const {
  json list = {{"files", json::array()}};
  std::string texts;
  for (const FileEdits& file : files) {
    json entry = {{"path", file.path}, {"edits", sizes_of(file.edits, texts)}};
    if (file.expected_revision) {
      entry["expected"] = *file.expected_revision;
    }
    list["files"].push_back(std::move(entry));
  }
  std::string text = json_text(list);
  json head = {{"op", name_of(k_operation)},       {"owner", owner},     {"listBytes", text.size()},
               {"matchIsEnough", match_is_enough}, {"preview", preview}, {"replacement", is_replacement}};
  return {std::move(head), text + texts};
}

FileEditSetRequest FileEditSetRequest::from(const Field& head, std::string_view body) {
  FileEditSetRequest request;
  request.owner = head.at("owner").text();
  request.match_is_enough = optional_flag(head, "matchIsEnough");
  request.preview = head.at("preview").flag();
  request.is_replacement = head.at("replacement").flag();
  const std::size_t list_bytes = head.at("listBytes").number(body.size());
  const json list = list_from(body.substr(0, list_bytes));
  EditTexts texts(body.substr(list_bytes));
  const Field fields(list);
  const Field files = fields.at("files");
  for (const Field& file : files.elements()) {
    request.files.push_back({file.at("path").text(), texts.take(file.at("edits")), optional_text(file, "expected")});
  }
  return request;
}

json FileUndoRequest::to_json() const {
  json head = head_of(k_operation, change);
  if (!change_id.empty()) {
    head["change"] = change_id;
  }
  return head;
}

FileUndoRequest FileUndoRequest::from(const Field& head, std::string_view /*body*/) {
  return {change_request_from(head), optional_text(head, "change").value_or("")};
}

Frame FileStageAnswer::to_frame() {
  return {{{"staging", true}}, ""};
}

FileStageAnswer FileStageAnswer::from(const Field& /*head*/, std::string_view /*body*/) {
  return {};
}

json FileStageRequest::to_json() const {
  return {{"op", name_of(k_operation)}, {"staging", staging}, {"path", path}, {"first", first}};
}

FileStageRequest FileStageRequest::from(const Field& head, std::string_view body) {
  return {head.at("staging").text(), head.at("path").text(), head.at("first").flag(), body};
}

Frame FileAbandonAnswer::to_frame() {
  return {json::object(), ""};
}

json FileAbandonRequest::to_json() const {
  return {{"op", name_of(k_operation)}, {"staging", staging}};
}

FileAbandonRequest FileAbandonRequest::from(const Field& head, std::string_view /*body*/) {
  return {optional_text(head, "staging").value_or("")};
}

}  // namespace dockbridge::wire
