#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "wire/names.hpp"

namespace dockbridge::wire {

/// Encoding of a text file. UTF-16 is detected by its byte order mark only. Latin-1 also stands for every other
/// encoding of single bytes: whatever the bytes mean, they are written back unchanged.
enum class Encoding : std::uint8_t { utf8, utf8_bom, utf16_le, utf16_be, latin1 };
template <>
inline constexpr std::array<std::string_view, 5> k_names<Encoding> = {"utf-8", "utf-8-bom", "utf-16le", "utf-16be",
                                                                      "latin-1"};

/// Line ends of a text. `none` means a single line without an end.
enum class LineEnds : std::uint8_t { none, lf, crlf, mixed };
template <>
inline constexpr std::array<std::string_view, 4> k_names<LineEnds> = {"none", "lf", "crlf", "mixed"};

}  // namespace dockbridge::wire
