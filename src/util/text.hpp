#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dockbridge {

/// Valid UTF-8 made of arbitrary bytes; what is not UTF-8 becomes U+FFFD.
struct ValidText {
  std::string text;
  std::size_t replaced_bytes = 0;
};
ValidText to_valid_utf8(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

/// How many bytes at the end of `bytes` belong to a character that is not complete yet (0 to 3).
std::size_t incomplete_utf8_tail(std::string_view bytes);
/// How many bytes at the start are the rest of a character that began before (0 to 3).
std::size_t partial_utf8_start(std::string_view bytes);

/// What a person would have seen on a terminal at the end: escape sequences gone, and of what carriage returns and
/// backspaces overwrote only what was left standing.
std::string plain_terminal_text(std::string_view text);
/// Several equal lines in a row become one, and a line that says how often it comes again.
std::string fold_repeated_lines(std::string_view text);

/// One line for logs and messages: control characters, bidirectional controls and line separators become visible
/// escapes.
std::string printable_line(std::string_view text, std::size_t max_bytes);

/// The same of several lines: line breaks and tabs stay.
std::string printable_text(std::string_view text, std::size_t max_bytes);

/// 1234567 as "1.2 MB".
std::string human_bytes(std::uint64_t bytes);

}  // namespace dockbridge
