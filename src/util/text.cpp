#include "util/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dockbridge {

namespace {

constexpr std::string_view k_replacement = "\xEF\xBF\xBD";

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0U) == 0x80U;
}

std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return 2;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    return 3;
  }
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

/// Length of the valid character at `at`; 0 if there is none.
std::size_t valid_character(std::string_view text, std::size_t at) {
  const unsigned char lead = byte_at(text, at);
  const std::size_t length = sequence_length(lead);
  if (length == 0 || at + length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(byte_at(text, at + i))) {
      return 0;
    }
  }
  if (length > 2) {
    const unsigned char second = byte_at(text, at + 1);
    const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    const bool surrogate_or_beyond = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
    if (overlong || surrogate_or_beyond) {
      return 0;
    }
  }
  return length;
}

/// Index after the escape sequence whose ESC is at `at`.
std::size_t skip_escape(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) {
    return text.size();
  }
  const char kind = text[at + 1];
  std::size_t i = at + 2;
  if (kind == '[') {
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3F) {
      ++i;
    }
    const bool finished = i < text.size() && text[i] >= 0x40 && text[i] <= 0x7E;
    return finished ? i + 1 : i;
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^' || kind == 'X') {
    // A string ends with BEL or ESC \. Without an end on its line it is not a string, so that no text is lost.
    const std::size_t end = std::min(text.find_first_of("\a\x1b\n", i), text.size());
    if (end + 1 >= text.size() && (end == text.size() || text[end] == '\x1b')) {
      return text.size();
    }
    if (text[end] == '\a') {
      return end + 1;
    }
    return text[end] == '\x1b' && text[end + 1] == '\\' ? end + 2 : i;
  }
  if (kind == '(' || kind == ')' || kind == '#' || kind == '%') {
    return std::min(i + 1, text.size());
  }
  return i;
}

/// A line of a terminal: characters in cells, with a cursor.
class LineOfCells {
 public:
  void put(std::string_view character) {
    if (m_cursor < m_cells.size()) {
      m_cells[m_cursor] = character;
    } else {
      m_cells.push_back(character);
    }
    ++m_cursor;
  }
  void to_start() { m_cursor = 0; }
  void back() { m_cursor -= m_cursor > 0 ? 1 : 0; }
  void erase_to_end() { m_cells.resize(std::min(m_cursor, m_cells.size())); }
  void flush_into(std::string& out) {
    for (const auto& cell : m_cells) {
      out.append(cell);
    }
    m_cells.clear();
    m_cursor = 0;
  }

 private:
  std::vector<std::string_view> m_cells;
  std::size_t m_cursor = 0;
};

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    constexpr std::uint64_t k_high_bits = 0x8080808080808080U;
    std::uint64_t word = 0;
    if (bytes.size() - at >= sizeof word) {
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if ((word & k_high_bits) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const std::size_t length = valid_character(bytes, at);
    if (length == 0) {
      return false;
    }
    at += length;
  }
  return true;
}

ValidText to_valid_utf8(std::string_view bytes) {
  if (is_valid_utf8(bytes)) {
    return {std::string(bytes), 0};
  }
  ValidText result;
  result.text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    if (const std::size_t length = valid_character(bytes, i); length > 0) {
      result.text.append(bytes.substr(i, length));
      i += length;
    } else {
      result.text.append(k_replacement);
      ++result.replaced_bytes;
      ++i;
    }
  }
  return result;
}

std::size_t incomplete_utf8_tail(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const unsigned char byte = byte_at(bytes, bytes.size() - back);
    if (is_continuation(byte)) {
      continue;
    }
    return sequence_length(byte) > back ? back : 0;
  }
  return 0;
}

std::size_t partial_utf8_start(std::string_view bytes) {
  std::size_t count = 0;
  while (count < std::min<std::size_t>(3, bytes.size()) && is_continuation(byte_at(bytes, count))) {
    ++count;
  }
  return count;
}

std::string plain_terminal_text(std::string_view text) {
  constexpr std::string_view k_special = "\x1b\r\b";
  if (text.find_first_of(k_special) == std::string_view::npos) {
    return std::string(text);
  }
  std::string out;
  out.reserve(text.size());
  LineOfCells line;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\x1b') {
      const std::size_t end = skip_escape(text, i);
      const bool erases = end >= i + 3 && text[i + 1] == '[' && text[end - 1] == 'K';
      if (erases && (text[i + 2] == 'K' || text[i + 2] == '0')) {
        line.erase_to_end();
      } else if (erases && text[i + 2] == '2') {
        line.to_start();
        line.erase_to_end();
      }
      i = end;
    } else if (c == '\r') {
      line.to_start();
      ++i;
    } else if (c == '\b') {
      line.back();
      ++i;
    } else if (c == '\n') {
      line.flush_into(out);
      out.push_back('\n');
      ++i;
    } else {
      const std::size_t length = std::max<std::size_t>(1, valid_character(text, i));
      line.put(text.substr(i, length));
      i += length;
    }
  }
  line.flush_into(out);
  return out;
}

std::string fold_repeated_lines(std::string_view text) {
  constexpr std::size_t k_least_fold = 4;
  std::string folded;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
    std::size_t count = 1;
    while (text.substr(count * line.size()).starts_with(line)) {
      ++count;
    }
    text.remove_prefix(count * line.size());
    folded += line;
    if (count >= k_least_fold) {
      folded += fmt::format("[the line above {} more times]\n", count - 1);
      continue;
    }
    for (std::size_t again = 1; again < count; ++again) {
      folded += line;
    }
  }
  return folded;
}

namespace {

/// The code point at the start of `text` if it changes the order or the lines of the text around it: a bidirectional
/// control, U+2028 or U+2029. Otherwise 0. Each is two or three bytes long.
unsigned layout_control(std::string_view text) {
  if (text.starts_with("\u061c")) {
    return 0x061C;
  }
  if (text.size() < 3 || text[0] != '\xE2' || (text[1] != '\x80' && text[1] != '\x81')) {
    return 0;
  }
  const unsigned code = 0x2000U + (static_cast<unsigned>(text[1] & 0x3F) << 6U) + static_cast<unsigned>(text[2] & 0x3F);
  const bool is_one =
      code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return is_one ? code : 0;
}

std::string printable(std::string_view text, std::size_t max_bytes, bool keep_lines) {
  const bool cut = text.size() > max_bytes;
  text = text.substr(0, max_bytes);
  text.remove_suffix(cut ? incomplete_utf8_tail(text) : 0);
  std::string out;
  const std::string valid = to_valid_utf8(text).text;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const char c = valid[i];
    // U+0080 to U+009F are control characters too: for a terminal, U+009B starts an escape sequence.
    if (c == '\xC2' && static_cast<unsigned char>(valid[i + 1]) < 0xA0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(valid[++i]));
    } else if (const unsigned code = layout_control(std::string_view(valid).substr(i)); code != 0) {
      out += fmt::format("\\u{:04x}", code);
      i += code < 0x800 ? 1 : 2;
    } else if (keep_lines && (c == '\n' || c == '\t')) {
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return cut ? out + "…" : out;
}

}  // namespace

std::string printable_line(std::string_view text, std::size_t max_bytes) {
  return printable(text, max_bytes, false);
}

std::string printable_text(std::string_view text, std::size_t max_bytes) {
  return printable(text, max_bytes, true);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> k_units = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) {
    return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  }
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < k_units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, k_units.at(unit));
}

}  // namespace dockbridge
