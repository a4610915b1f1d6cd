#include "wire/file_search_messages.hpp"

#include <algorithm>
#include <utility>

#include "util/json_text.hpp"

namespace dockbridge::wire {

namespace {

using nlohmann::json;

json head_of(const std::string& path, std::uint64_t shown, const SearchTotals& totals) {
  return {{"path", path},
          {"shown", shown},
          {"total", totals.total},
          {"more", totals.more},
          {"hidden", totals.hidden},
          {"ignored", totals.ignored},
          {"unreadable", totals.unreadable},
          {"unreadablePaths", totals.unreadable_paths}};
}

SearchTotals totals_from(const Field& head) {
  return {head.at("total").number(),   head.at("more").flag(),         head.at("hidden").number(),
          head.at("ignored").number(), head.at("unreadable").number(), notes_from(head.at("unreadablePaths"))};
}

json fields_of(const FoundLine& line) {
  return {line.number, line.matches ? std::max<std::uint64_t>(line.column, 1) : 0, line.text, line.cut_before,
          line.cut_after};
}

FoundLine found_line_from(const Field& line) {
  const auto fields = line.elements();
  if (fields.size() < 5) {
    line.fail_here();
  }
  const std::uint64_t column = fields[1].number();
  return {fields[0].number(), column > 0, column, fields[2].text(), fields[3].number(), fields[4].number()};
}

FoundFile found_file_from(const Field& entry) {
  FoundFile file{entry.at("path").text(), entry.at("matches").number()};
  const Field lines = entry.at("lines");
  for (const Field& line : lines.elements()) {
    file.lines.push_back(found_line_from(line));
  }
  return file;
}

}  // namespace

bool FoundBody::add(std::string_view text) {
  if (m_text.size() + text.size() > k_max_found_bytes) {
    return false;
  }
  m_text += text;
  ++m_count;
  return true;
}

bool FoundFilesBody::add(const FoundFile& file) {
  json fields = {{"path", file.path}, {"matches", file.matches}, {"lines", json::array()}};
  for (const FoundLine& line : file.lines) {
    fields["lines"].push_back(fields_of(line));
  }
  return m_files.add((m_files.count() == 0 ? "" : ",") + json_text(fields));
}

std::string FoundFilesBody::take() {
  return "{\"files\":[" + m_files.take() + "]}";
}

json FileListRequest::to_json() const {
  return {{"op", name_of(k_operation)},          {"path", path},       {"ignore", ignore}, {"depth", depth},
          {"honourIgnore", honour_ignore_files}, {"details", details}, {"offset", offset}, {"max", max}};
}

FileListRequest FileListRequest::from(const Field& head, std::string_view /*body*/) {
  FileListRequest request;
  request.path = head.at("path").text();
  request.ignore = head.at("ignore").texts();
  request.depth = static_cast<std::uint32_t>(head.at("depth").number(UINT32_MAX));
  request.honour_ignore_files = head.at("honourIgnore").flag();
  request.details = head.at("details").flag();
  request.offset = head.at("offset").number();
  request.max = head.at("max").number();
  return request;
}

json FileListing::to_json() const {
  return head_of(path, shown, totals);
}

FileListing FileListing::from(const Field& head, std::string_view body) {
  auto entries = decode_entries(body);
  if (!entries) {
    throw BadField("body");
  }
  return {head.at("path").text(), std::move(*entries), head.at("shown").number(), totals_from(head)};
}

json FileGlobRequest::to_json() const {
  return {
      {"op", name_of(k_operation)},          {"path", path},     {"pattern", pattern}, {"newestFirst", newest_first},
      {"honourIgnore", honour_ignore_files}, {"hidden", hidden}, {"offset", offset},   {"max", max}};
}

FileGlobRequest FileGlobRequest::from(const Field& head, std::string_view /*body*/) {
  FileGlobRequest request;
  request.path = head.at("path").text();
  request.pattern = head.at("pattern").text();
  request.newest_first = head.at("newestFirst").flag();
  request.honour_ignore_files = head.at("honourIgnore").flag();
  request.hidden = head.at("hidden").flag();
  request.offset = head.at("offset").number();
  request.max = head.at("max").number();
  return request;
}

json FileGrepRequest::to_json() const {
  return {{"op", name_of(k_operation)},
          {"path", path},
          {"pattern", pattern},
          {"literal", literal},
          {"ignoreCase", ignore_case},
          {"wholeWord", whole_word},
          {"multiLine", multi_line},
          {"include", include},
          {"exclude", exclude},
          {"honourIgnore", honour_ignore_files},
          {"hidden", hidden},
          {"context", context},
          {"output", name_of(output)},
          {"offset", offset},
          {"max", max}};
}

FileGrepRequest FileGrepRequest::from(const Field& head, std::string_view /*body*/) {
  FileGrepRequest request;
  request.path = head.at("path").text();
  request.pattern = head.at("pattern").text();
  request.literal = head.at("literal").flag();
  request.ignore_case = head.at("ignoreCase").flag();
  request.whole_word = head.at("wholeWord").flag();
  request.multi_line = head.at("multiLine").flag();
  request.include = head.at("include").texts();
  request.exclude = head.at("exclude").texts();
  request.honour_ignore_files = head.at("honourIgnore").flag();
  request.hidden = head.at("hidden").flag();
  request.context = head.at("context").number();
  request.output = head.at("output").word(grep_output_from);
  request.offset = head.at("offset").number();
  request.max = head.at("max").number();
  return request;
}

json FileGrepResult::to_json() const {
  json head = head_of(path, shown, totals);
  head["matches"] = matches;
  head["filesWithMatches"] = files_with_matches;
  head["filesSearched"] = files_searched;
  head["binary"] = binary_skipped;
  head["notes"] = notes;
  return head;
}

FileGrepResult FileGrepResult::from(const Field& head, std::string_view body) {
  FileGrepResult result;
  result.path = head.at("path").text();
  result.shown = head.at("shown").number();
  if (const auto matches = head.find("matches")) {
    result.matches = matches->number();
  }
  result.files_with_matches = head.at("filesWithMatches").number();
  result.files_searched = head.at("filesSearched").number();
  result.binary_skipped = head.at("binary").number();
  result.notes = notes_from(head.at("notes"));
  result.totals = totals_from(head);
  const json list = list_from(body);
  const Field fields(list);
  const Field files = fields.at("files");
  for (const Field& file : files.elements()) {
    result.files.push_back(found_file_from(file));
  }
  return result;
}

}  // namespace dockbridge::wire
