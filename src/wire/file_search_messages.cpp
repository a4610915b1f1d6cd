#include "wire/file_search_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "util/json_text.hpp"

namespace dockbridge::wire {

namespace {

constexpr char k_none = '-';

/// Removes the text up to the next `end` from `rest`; nullopt if there is no `end`.
std::optional<std::string_view> take_until(char end, std::string_view& rest) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return taken;
}

template <typename Number>
bool read_number(const std::optional<std::string_view>& text, Number& number, int base = 10) {
  if (!text) {
    return false;
  }
  const auto read = std::from_chars(text->data(), text->data() + text->size(), number, base);
  return read.ec == std::errc() && read.ptr == text->data() + text->size();
}

std::optional<FileEntry> take_entry(std::string_view& body) {
  FileEntry entry;
  const auto type = value_named<FileType>(take_until(' ', body).value_or(""));
  const bool is_sized = read_number(take_until(' ', body), entry.size);
  const bool is_dated = read_number(take_until(' ', body), entry.modified_at_ms);
  const auto mode = take_until('\0', body);
  const auto path = take_until('\0', body);
  const auto target = take_until('\0', body);
  const bool has_mode = mode != std::string_view(&k_none, 1);
  if (!type || !is_sized || !is_dated || !path || !target || entry.size > INT64_MAX ||
      (has_mode && (!read_number(mode, entry.mode.emplace(), 8) || *entry.mode > k_permissions))) {
    return std::nullopt;
  }
  entry.type = *type;
  entry.path = *path;
  entry.target = *target;
  return entry;
}

}  // namespace

std::string encode(const FileEntry& entry) {
  std::string text = fmt::format("{} {} {} ", name_of(entry.type), entry.size, entry.modified_at_ms);
  text += entry.mode ? fmt::format("{:o}", *entry.mode) : std::string(1, k_none);
  text.append(1, '\0').append(entry.path).append(1, '\0').append(entry.target).append(1, '\0');
  return text;
}

std::optional<std::vector<FileEntry>> decode_entries(std::string_view body) {
  std::vector<FileEntry> entries;
  while (!body.empty()) {
    auto entry = take_entry(body);
    if (!entry) {
      return std::nullopt;
    }
    entries.push_back(std::move(*entry));
  }
  return entries;
}

nlohmann::json to_json(const FoundLine& line) {
  return {line.number, line.matches ? std::max<std::uint64_t>(line.column, 1) : 0, line.text, line.cut_before,
          line.cut_after};
}

FoundLine FoundLine::from_json(const Field& field) {
  const auto parts = field.elements();
  if (parts.size() < 5) {
    field.fail_here();
  }
  const std::uint64_t column = parts[1].number();
  return {parts[0].number(), column > 0, column, parts[2].text(), parts[3].number(), parts[4].number()};
}

void FoundFile::visit(Codec& codec) {
  codec("path", path);
  codec("matches", matches);
  codec("lines", lines);
}

bool FoundBody::add(std::string_view text) {
  if (m_text.size() + text.size() > k_max_found_bytes) {
    return false;
  }
  m_text += text;
  ++m_count;
  return true;
}

bool FoundFilesBody::add(const FoundFile& file) {
  return m_files.add((m_files.count() == 0 ? "" : ",") + json_text(to_json(file)));
}

std::string FoundFilesBody::take() {
  return "{\"files\":[" + m_files.take() + "]}";
}

void SearchTotals::visit(Codec& codec) {
  codec("total", total);
  codec("more", more);
  codec("hidden", hidden);
  codec("ignored", ignored);
  codec("unreadable", unreadable);
  codec("unreadablePaths", unreadable_paths, notes_from);
}

void FileListRequest::visit(Codec& codec) {
  codec("path", path);
  codec("ignore", ignore);
  codec("depth", depth);
  codec("honourIgnore", honour_ignore_files);
  codec("details", details);
  codec("offset", offset);
  codec("max", max);
}

void FileListing::visit(Codec& codec) {
  codec("path", path);
  codec("shown", shown);
  totals.visit(codec);
  if (codec.is_reading()) {
    auto decoded = decode_entries(codec.rest());
    if (!decoded) {
      throw BadField("body");
    }
    entries = std::move(*decoded);
  }
}

void FileGlobRequest::visit(Codec& codec) {
  codec("path", path);
  codec("pattern", pattern);
  codec("newestFirst", newest_first);
  codec("honourIgnore", honour_ignore_files);
  codec("hidden", hidden);
  codec("offset", offset);
  codec("max", max);
}

void FileGrepRequest::visit(Codec& codec) {
  codec("path", path);
  codec("pattern", pattern);
  codec("literal", literal);
  codec("ignoreCase", ignore_case);
  codec("wholeWord", whole_word);
  codec("multiLine", multi_line);
  codec("include", include);
  codec("exclude", exclude);
  codec("honourIgnore", honour_ignore_files);
  codec("hidden", hidden);
  codec("context", context);
  codec("output", output);
  codec("offset", offset);
  codec("max", max);
}

void FileGrepResult::visit(Codec& codec) {
  codec("path", path);
  codec("shown", shown);
  codec.lenient("matches", matches);
  codec("filesWithMatches", files_with_matches);
  codec("filesSearched", files_searched);
  codec("binary", binary_skipped);
  codec("notes", notes, notes_from);
  totals.visit(codec);
  if (codec.is_reading()) {
    const nlohmann::json list = object_in_body(codec.rest());
    const Field fields(list);
    Codec(fields, {})("files", files);
  }
}

}  // namespace dockbridge::wire
