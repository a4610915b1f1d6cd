#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dockbridge {

/// Arbitrary bytes as valid UTF-8. Invalid bytes are replaced with U+FFFD.
struct ValidText {
  std::string text;
  std::size_t replaced_bytes = 0;
};
ValidText to_valid_utf8(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

/// Number of bytes at the end of `bytes` that belong to an incomplete character (0 to 3).
std::size_t incomplete_utf8_tail(std::string_view bytes);
/// Number of bytes at the start that continue an earlier character (0 to 3).
std::size_t partial_utf8_start(std::string_view bytes);

/// The final text as a terminal displays it. Escape sequences are removed, and carriage returns and backspaces are
/// applied.
std::string plain_terminal_text(std::string_view text);
/// Replaces several equal lines in a row with one, and a line with the number of repetitions.
std::string fold_repeated_lines(std::string_view text);

/// One line for logs and messages: control characters, bidirectional controls and line separators become visible
/// escapes.
std::string printable_line(std::string_view text, std::size_t max_bytes);

/// Like printable_line for several lines: line breaks and tabs are kept.
std::string printable_text(std::string_view text, std::size_t max_bytes);

/// A size for people: 1234567 becomes "1.2 MB".
std::string human_bytes(std::uint64_t bytes);

}  // namespace dockbridge
