#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dockbridge::wire {

/// How the text of a file is stored. UTF-16 is known by its byte order mark alone. Latin-1 stands for every other
/// encoding that goes by single bytes: whatever the bytes mean, they come back as they were.
enum class Encoding : std::uint8_t { utf8, utf8_bom, utf16_le, utf16_be, latin1 };
inline constexpr std::array<std::string_view, 5> k_encoding_names = {"utf-8", "utf-8-bom", "utf-16le", "utf-16be",
                                                                     "latin-1"};

/// How the lines of a text end. `none` means a single line without an end.
enum class LineEnds : std::uint8_t { none, lf, crlf, mixed };
inline constexpr std::array<std::string_view, 4> k_line_ends_names = {"none", "lf", "crlf", "mixed"};

/// The value of an enumeration whose names are listed in its order; nullopt if none has this name.
template <typename Value, typename Names>
std::optional<Value> value_named(const Names& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Value>(found - names.begin()));
}

inline std::string_view name_of(Encoding encoding) {
  return k_encoding_names.at(static_cast<std::size_t>(encoding));
}
inline std::optional<Encoding> encoding_from(std::string_view name) {
  return value_named<Encoding>(k_encoding_names, name);
}

inline std::string_view name_of(LineEnds ends) {
  return k_line_ends_names.at(static_cast<std::size_t>(ends));
}
inline std::optional<LineEnds> line_ends_from(std::string_view name) {
  return value_named<LineEnds>(k_line_ends_names, name);
}

}  // namespace dockbridge::wire
