#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "wire/text_format.hpp"

namespace dockbridge::agent {

using wire::Encoding;
using wire::LineEnds;
using wire::name_of;

LineEnds line_ends_of(std::string_view text);

/// True for every byte of UTF-8 that is not the continuation of a character.
inline bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

/// Writes one character as UTF-8 to `out`, which has room for four bytes. Returns the end of the character.
inline char* put_utf8(char* out, std::uint32_t point) {
  if (point < 0x80) {
    *out++ = static_cast<char>(point);
    return out;
  }
  if (point < 0x800) {
    *out++ = static_cast<char>(0xC0U | (point >> 6U));
  } else {
    if (point < 0x10000) {
      *out++ = static_cast<char>(0xE0U | (point >> 12U));
    } else {
      *out++ = static_cast<char>(0xF0U | (point >> 18U));
      *out++ = static_cast<char>(0x80U | ((point >> 12U) & 0x3FU));
    }
    *out++ = static_cast<char>(0x80U | ((point >> 6U) & 0x3FU));
  }
  *out++ = static_cast<char>(0x80U | (point & 0x3FU));
  return out;
}

/// Checks bytes, fed in pieces of any size, for valid UTF-8.
class Utf8Check {
 public:
  void feed(std::string_view bytes);
  /// All bytes so far are valid, and the last character is complete.
  [[nodiscard]] bool is_complete() const { return m_valid && m_missing == 0; }

 private:
  void take(unsigned char byte);

  bool m_valid = true;
  std::uint8_t m_missing = 0;  // continuation bytes
  std::uint8_t m_least = 0x80;
  std::uint8_t m_most = 0xBF;  // of the next one
};

/// Detects the encoding of a file from its bytes, fed in pieces of any size. A gigabyte of ASCII takes a fraction of a
/// second.
class EncodingDetector {
 public:
  void feed(std::string_view bytes);
  /// The encoding if the bytes so far are the whole file. For a part of a file, do not feed its
  /// `incomplete_utf8_tail`. Nullopt means binary: NUL bytes or many control characters, and no byte order mark.
  [[nodiscard]] std::optional<Encoding> result() const;

 private:
  std::string m_start;  // the place of a byte order mark
  std::uint64_t m_size = 0;
  std::uint64_t m_controls = 0;
  bool m_nul = false;
  Utf8Check m_utf8;
};

/// Detects the encoding of a whole file.
std::optional<Encoding> detect_encoding(std::string_view bytes);

/// Converts to UTF-8, without a byte order mark. `encode` is the exact inverse. Error `not_decodable` if the bytes are
/// not in that encoding.
Result<std::string> decode(std::string_view bytes, Encoding encoding);
/// Converts from UTF-8, with the byte order mark of the encoding. Error `not_encodable`, with the first character that
/// does not exist in the encoding.
Result<std::string> encode(std::string_view utf8_text, Encoding encoding);

}  // namespace dockbridge::agent
