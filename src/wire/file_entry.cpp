#include "wire/file_entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace dockbridge::wire {

namespace {

constexpr char k_none = '-';
constexpr unsigned k_all_permissions = 07777;
constexpr std::array<std::string_view, 8> k_types = {"file",   "directory", "link", "fifo",
                                                     "socket", "block",     "char", "unknown"};

/// What stands before the next `end`, and takes it away; none if there is none.
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
  const auto type = take_until(' ', body);
  const bool is_sized = read_number(take_until(' ', body), entry.size);
  const bool is_dated = read_number(take_until(' ', body), entry.modified_at_ms);
  const auto mode = take_until('\0', body);
  const auto path = take_until('\0', body);
  const auto target = take_until('\0', body);
  const bool has_mode = mode != std::string_view(&k_none, 1);
  if (!type || std::find(k_types.begin(), k_types.end(), *type) == k_types.end() || !is_sized || !is_dated || !path ||
      !target || entry.size > INT64_MAX ||
      (has_mode && (!read_number(mode, entry.mode.emplace(), 8) || *entry.mode > k_all_permissions))) {
    return std::nullopt;
  }
  entry.type = *type;
  entry.path = *path;
  entry.target = *target;
  return entry;
}

}  // namespace

std::string encode(const FileEntry& entry) {
  std::string text = fmt::format("{} {} {} ", entry.type, entry.size, entry.modified_at_ms);
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

}  // namespace dockbridge::wire
