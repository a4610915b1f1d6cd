#include "agent/files/text/encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace dockbridge::agent {

namespace {

constexpr std::string_view k_utf8_mark = "\xEF\xBB\xBF";
constexpr std::string_view k_utf16_le_mark = "\xFF\xFE";
constexpr std::string_view k_utf16_be_mark = "\xFE\xFF";
constexpr std::string_view k_utf32_le_mark{"\xFF\xFE\0\0", 4};
constexpr std::size_t k_max_mark_bytes = 4;

/// Text may contain a few control characters: this number in any file, and a share of the other bytes.
constexpr std::uint64_t k_free_controls = 8;
constexpr std::uint64_t k_utf8_bytes_per_control = 10;
constexpr std::uint64_t k_latin1_bytes_per_control = 50;  // a tenth of random bytes are controls

/// A fixed length, so the compiler uses vector instructions.
constexpr std::size_t k_block_bytes = 64;

bool is_ascii_block(const char* bytes) {
  unsigned char all = 0;
  for (std::size_t i = 0; i < k_block_bytes; ++i) {
    all |= static_cast<unsigned char>(bytes[i]);
  }
  return all < 0x80;
}

/// A control character other than those for terminals and printers (BEL to CR, and ESC).
bool is_control(unsigned char byte) {
  const bool is_layout = static_cast<unsigned char>(byte - 7) <= 6;
  return static_cast<unsigned>(byte < 0x20) & static_cast<unsigned>(!is_layout) & static_cast<unsigned>(byte != 0x1B);
}

std::uint64_t count_controls(std::string_view bytes) {
  std::uint64_t count = 0;
  for (; bytes.size() >= k_block_bytes; bytes.remove_prefix(k_block_bytes)) {
    unsigned char in_block = 0;
    for (std::size_t i = 0; i < k_block_bytes; ++i) {
      in_block += static_cast<unsigned char>(is_control(static_cast<unsigned char>(bytes[i])));
    }
    count += in_block;
  }
  for (const char c : bytes) {
    count += is_control(static_cast<unsigned char>(c)) ? 1 : 0;
  }
  return count;
}

void append_utf8(std::string& out, std::uint32_t point) {
  std::array<char, 4> bytes{};
  out.append(bytes.data(), put_utf8(bytes.data(), point));
}

/// Removes the first character from valid text, and returns it.
std::uint32_t take_point(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80 ? 1 : static_cast<std::size_t>(std::countl_one(lead));
  std::uint32_t point = length == 1 ? lead : lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    point = (point << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  text.remove_prefix(length);
  return point;
}

bool is_valid_utf8(std::string_view text) {
  Utf8Check check;
  check.feed(text);
  return check.is_complete();
}

tl::unexpected<Error> not_decodable(Encoding encoding, const std::string& why) {
  return fail(ErrorCode::not_decodable, fmt::format("File is not valid {}: {}", name_of(encoding), why));
}

Result<std::string> decode_utf16(std::string_view bytes, Encoding encoding) {
  const bool little = encoding == Encoding::utf16_le;
  const std::string_view mark = little ? k_utf16_le_mark : k_utf16_be_mark;
  const std::size_t start = bytes.starts_with(mark) ? mark.size() : 0;
  if (bytes.size() % 2 != 0) {
    return not_decodable(encoding, "it has an odd number of bytes");
  }
  const auto unit_at = [&](std::size_t at) -> std::uint32_t {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return little ? first | (second << 8U) : second | (first << 8U);
  };
  std::string text;
  text.reserve(bytes.size() / 2);
  for (std::size_t at = start; at < bytes.size(); at += 2) {
    const std::uint32_t unit = unit_at(at);
    if (unit < 0xD800 || unit > 0xDFFF) {
      append_utf8(text, unit);
      continue;
    }
    const std::uint32_t low = unit < 0xDC00 && at + 2 < bytes.size() ? unit_at(at + 2) : 0;
    if (low < 0xDC00 || low > 0xDFFF) {
      return not_decodable(encoding, fmt::format("half a character (U+{:04X}) at byte {}", unit, at));
    }
    append_utf8(text, 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00));
    at += 2;
  }
  return text;
}

std::string decode_latin1(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (const char c : bytes) {
    append_utf8(text, static_cast<unsigned char>(c));
  }
  return text;
}

std::string encode_utf16(std::string_view text, Encoding encoding) {
  const bool little = encoding == Encoding::utf16_le;
  std::string bytes(little ? k_utf16_le_mark : k_utf16_be_mark);
  bytes.reserve(2 + text.size() * 2);
  const auto put = [&](std::uint32_t unit) {
    const auto high = static_cast<char>(unit >> 8U);
    const auto low = static_cast<char>(unit & 0xFFU);
    bytes.push_back(little ? low : high);
    bytes.push_back(little ? high : low);
  };
  while (!text.empty()) {
    const std::uint32_t point = take_point(text);
    if (point < 0x10000) {
      put(point);
    } else {
      put(0xD800 + ((point - 0x10000) >> 10U));
      put(0xDC00 + ((point - 0x10000) & 0x3FFU));
    }
  }
  return bytes;
}

Result<std::string> encode_latin1(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view here = rest;
    const std::uint32_t point = take_point(rest);
    if (point > 0xFF) {
      const std::string_view before = text.substr(0, text.size() - here.size());
      return fail(ErrorCode::not_encodable,
                  fmt::format("Line {}: {} (U+{:04X}) cannot be encoded in latin-1",
                              1 + std::count(before.begin(), before.end(), '\n'),
                              here.substr(0, here.size() - rest.size()), point),
                  "The file is in latin-1. Use characters up to U+00FF, or write the whole file with encoding: utf-8");
    }
    bytes.push_back(static_cast<char>(point));
  }
  return bytes;
}

}  // namespace

LineEnds line_ends_of(std::string_view text) {
  LineEnds found = LineEnds::none;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    const LineEnds here = at > 0 && text[at - 1] == '\r' ? LineEnds::crlf : LineEnds::lf;
    if (found != LineEnds::none && found != here) {
      return LineEnds::mixed;
    }
    found = here;
  }
  return found;
}

void Utf8Check::feed(std::string_view bytes) {
  while (m_valid && !bytes.empty()) {
    if (m_missing == 0 && bytes.size() >= k_block_bytes && is_ascii_block(bytes.data())) {
      bytes.remove_prefix(k_block_bytes);
      continue;
    }
    const std::size_t length = std::min(k_block_bytes, bytes.size());
    for (std::size_t i = 0; i < length && m_valid; ++i) {
      take(static_cast<unsigned char>(bytes[i]));
    }
    bytes.remove_prefix(length);
  }
}

void Utf8Check::take(unsigned char byte) {
  if (m_missing > 0) {
    m_valid = byte >= m_least && byte <= m_most;
    m_least = 0x80;
    m_most = 0xBF;
    --m_missing;
  } else if (byte >= 0xC2 && byte <= 0xDF) {
    m_missing = 1;
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    m_missing = 2;
    m_least = byte == 0xE0 ? 0xA0 : 0x80;  // no overlong ones
    m_most = byte == 0xED ? 0x9F : 0xBF;   // no surrogates
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    m_missing = 3;
    m_least = byte == 0xF0 ? 0x90 : 0x80;
    m_most = byte == 0xF4 ? 0x8F : 0xBF;  // nothing above U+10FFFF
  } else {
    m_valid = byte < 0x80;
  }
}

void EncodingDetector::feed(std::string_view bytes) {
  m_start.append(bytes.substr(0, k_max_mark_bytes - m_start.size()));
  m_size += bytes.size();
  m_utf8.feed(bytes);
  m_nul = m_nul || bytes.find('\0') != std::string_view::npos;
  m_controls += m_nul ? 0 : count_controls(bytes);
}

std::optional<Encoding> EncodingDetector::result() const {
  if (m_start.starts_with(k_utf8_mark) && m_utf8.is_complete()) {
    return Encoding::utf8_bom;
  }
  if (m_start.starts_with(k_utf16_be_mark)) {
    return Encoding::utf16_be;
  }
  if (m_start.starts_with(k_utf16_le_mark) && m_start != k_utf32_le_mark) {
    return Encoding::utf16_le;
  }
  const bool is_utf8 = m_utf8.is_complete();
  const std::uint64_t share = m_size / (is_utf8 ? k_utf8_bytes_per_control : k_latin1_bytes_per_control);
  if (m_nul || m_controls > share + (is_utf8 ? k_free_controls : 0)) {
    return std::nullopt;
  }
  return is_utf8 ? Encoding::utf8 : Encoding::latin1;
}

std::optional<Encoding> detect_encoding(std::string_view bytes) {
  EncodingDetector detector;
  detector.feed(bytes);
  return detector.result();
}

Result<std::string> decode(std::string_view bytes, Encoding encoding) {
  switch (encoding) {
    case Encoding::utf8_bom:
      bytes.remove_prefix(bytes.starts_with(k_utf8_mark) ? k_utf8_mark.size() : 0);
      [[fallthrough]];
    case Encoding::utf8:
      if (!is_valid_utf8(bytes)) {
        return not_decodable(encoding, "some of its bytes form no character");
      }
      return std::string(bytes);
    case Encoding::utf16_le:
    case Encoding::utf16_be:
      return decode_utf16(bytes, encoding);
    case Encoding::latin1:
      break;
  }
  return decode_latin1(bytes);
}

Result<std::string> encode(std::string_view utf8_text, Encoding encoding) {
  if (!is_valid_utf8(utf8_text)) {
    return fail(ErrorCode::not_encodable, "The text is not valid UTF-8", "Pass binary data as base64");
  }
  switch (encoding) {
    case Encoding::utf8:
      return std::string(utf8_text);
    case Encoding::utf8_bom:
      return std::string(k_utf8_mark).append(utf8_text);
    case Encoding::utf16_le:
    case Encoding::utf16_be:
      return encode_utf16(utf8_text, encoding);
    case Encoding::latin1:
      break;
  }
  return encode_latin1(utf8_text);
}

}  // namespace dockbridge::agent
