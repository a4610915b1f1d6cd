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

/// Whether bytes that come in pieces of any size are UTF-8.
class Utf8Check {
 public:
  void feed(std::string_view bytes);
  /// Nothing so far is wrong.
  [[nodiscard]] bool is_valid() const { return m_valid; }
  /// And the last character is not cut short.
  [[nodiscard]] bool is_complete() const { return m_valid && m_missing == 0; }

 private:
  void take(unsigned char byte);

  bool m_valid = true;
  std::uint8_t m_missing = 0;  // continuation bytes
  std::uint8_t m_least = 0x80;
  std::uint8_t m_most = 0xBF;  // of the next one
};

/// Finds out how a file is stored from its bytes, in pieces of any size. A gigabyte of ASCII takes part of a second.
class EncodingDetector {
 public:
  void feed(std::string_view bytes);
  /// Taking what was fed as the whole file (of a part, leave out `incomplete_utf8_tail`). None: it is binary, as it
  /// holds NUL bytes or many control characters, and no byte order mark.
  [[nodiscard]] std::optional<Encoding> result() const;

 private:
  std::string m_start;  // where a byte order mark would be
  std::uint64_t m_size = 0;
  std::uint64_t m_controls = 0;
  bool m_nul = false;
  Utf8Check m_utf8;
};

/// The same for bytes that are there as a whole.
std::optional<Encoding> detect_encoding(std::string_view bytes);

/// To UTF-8, without a byte order mark. Error `not_decodable` where the bytes are not in that encoding.
/// `encode` makes the same bytes of it again.
Result<std::string> decode(std::string_view bytes, Encoding encoding);
/// With the byte order mark that belongs to the encoding. Error `not_encodable`, naming the first character that has no
/// place in it.
Result<std::string> encode(std::string_view utf8_text, Encoding encoding);

}  // namespace dockbridge::agent
