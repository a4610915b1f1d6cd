#include "agent/files/search/text_reader.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "agent/files/text/encoding.hpp"

namespace dockbridge::agent {

namespace {

/// Most files fit into it, and it fits into the cache of a core.
constexpr std::size_t k_block = 128 * 1024;
constexpr std::size_t k_raw_block = 32 * 1024;
/// A UTF-16 unit of two bytes becomes at most three bytes.
constexpr std::size_t k_decoded_block = k_raw_block / 2 * 3 + 4;

}  // namespace

TextReader::TextReader() : m_buffer(k_block) {}

TextReader::Outcome TextReader::read(int fd, TextSink& sink, bool windows) {
  m_capacity = k_block;
  m_size = 0;
  m_offset = 0;
  m_limit = 0;
  m_at_end = false;
  m_encoding = Encoding::bytes;
  m_raw_size = 0;
  m_in_piece = false;
  m_had_long_line = false;
  m_had_windows = false;
  while (true) {
    const Filled filled = fill(fd);
    if (filled == Filled::binary) {
      return Outcome::binary;
    }
    if (filled == Filled::unreadable) {
      return Outcome::unreadable;
    }
    const bool is_end = filled == Filled::end;
    if (!(windows ? hand_over_window(sink, is_end) : hand_over(sink, is_end))) {
      return Outcome::read;
    }
  }
}

/// Reads until the buffer is full or the file ends.
TextReader::Filled TextReader::fill(int fd) {
  if (m_buffer.size() < m_capacity) {
    m_buffer.resize(m_capacity);
  }
  while (!m_at_end && m_size < m_capacity) {
    if (m_encoding != Encoding::bytes && m_capacity - m_size < k_decoded_block) {
      return Filled::full;
    }
    const std::size_t before = m_size;
    if (const Filled filled = read_more(fd); filled == Filled::unreadable) {
      return filled;
    }
    if (std::memchr(m_buffer.data() + before, '\0', m_size - before) != nullptr) {
      return Filled::binary;
    }
  }
  return m_at_end ? Filled::end : Filled::full;
}

TextReader::Filled TextReader::read_more(int fd) {
  if (m_limit == 0 && m_offset >= k_block) {
    // A small file needs no check: its read succeeded. A larger one could be endless.
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      return Filled::unreadable;
    }
    m_limit = info.st_size == 0 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(info.st_size);
  }
  const bool is_raw = m_encoding != Encoding::bytes;
  char* const to = is_raw ? m_raw.data() + m_raw_size : m_buffer.data() + m_size;
  std::size_t room = is_raw ? m_raw.size() - m_raw_size : m_capacity - m_size;
  if (m_limit != 0) {
    room = std::min<std::uint64_t>(room, m_limit - std::min(m_limit, m_offset));
  }
  const ssize_t got = room == 0 ? 0 : ::pread(fd, to, room, static_cast<off_t>(m_offset));
  if (got < 0) {
    return errno == EINTR ? Filled::full : Filled::unreadable;
  }
  const bool is_first = m_offset == 0;
  m_offset += static_cast<std::uint64_t>(got);
  m_at_end = got == 0;
  (is_raw ? m_raw_size : m_size) += static_cast<std::size_t>(got);
  if (is_raw || (is_first && recognise_encoding())) {
    decode_utf16(m_at_end);
  }
  return Filled::full;
}

/// True if the first block is UTF-16, which must be decoded.
bool TextReader::recognise_encoding() {
  const std::string_view text(m_buffer.data(), m_size);
  if (text.starts_with("\xef\xbb\xbf")) {
    drop_front(3);
  }
  const bool little = text.starts_with("\xff\xfe");
  if (!little && !text.starts_with("\xfe\xff")) {
    return false;
  }
  m_encoding = little ? Encoding::utf16_little : Encoding::utf16_big;
  m_raw.resize(k_raw_block);
  m_raw_size = 0;
  m_size = 0;
  m_offset = 2;  // reads the rest again, in smaller blocks
  return true;
}

void TextReader::decode_utf16(bool is_end) {
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(m_raw[at]);
    const auto second = static_cast<unsigned char>(m_raw[at + 1]);
    return static_cast<std::uint32_t>(m_encoding == Encoding::utf16_little ? first | second << 8 : first << 8 | second);
  };
  constexpr std::uint32_t k_replacement = 0xFFFD;
  char* out = m_buffer.data() + m_size;
  std::size_t at = 0;
  while (at + 2 <= m_raw_size) {
    std::uint32_t c = unit(at);
    if (c >= 0xD800 && c < 0xDC00) {
      if (at + 4 > m_raw_size && !is_end) {
        break;
      }
      const std::uint32_t low = at + 4 <= m_raw_size ? unit(at + 2) : 0;
      if (low >= 0xDC00 && low < 0xE000) {
        c = 0x10000 + ((c - 0xD800) << 10U) + (low - 0xDC00);
        at += 2;
      } else {
        c = k_replacement;
      }
    } else if (c >= 0xDC00 && c < 0xE000) {
      c = k_replacement;
    }
    out = put_utf8(out, c);
    at += 2;
  }
  m_size = static_cast<std::size_t>(out - m_buffer.data());
  std::copy(m_raw.begin() + static_cast<std::ptrdiff_t>(at), m_raw.begin() + static_cast<std::ptrdiff_t>(m_raw_size),
            m_raw.begin());
  m_raw_size -= at;
}

/// Returns false if the file is finished.
bool TextReader::hand_over(TextSink& sink, bool is_end) {
  if (m_in_piece) {
    const std::string_view text(m_buffer.data(), m_size);
    const std::size_t end = text.find('\n', k_piece_overlap);
    const bool ends = is_end || end != std::string_view::npos;
    if (!sink.take_piece(text.substr(0, end), k_piece_overlap, false, ends)) {
      return false;
    }
    if (end == std::string_view::npos) {
      drop_front(m_size - k_piece_overlap);
      return !is_end;
    }
    drop_front(end + 1);
    m_in_piece = false;
    if (!is_end) {
      return true;
    }
  }
  const std::string_view text(m_buffer.data(), m_size);
  if (is_end) {
    if (!text.empty()) {
      sink.take_lines(text, text.size());
    }
    return false;
  }
  if (const std::size_t last = text.rfind('\n'); last != std::string_view::npos) {
    if (sink.take_lines(text.substr(0, last + 1), last + 1) == TextSink::k_enough) {
      return false;
    }
    drop_front(last + 1);
  } else if (m_capacity < k_max_line_bytes) {
    m_capacity *= 2;
  } else {
    m_had_long_line = true;
    m_in_piece = true;
    if (!sink.take_piece(text, 0, true, false)) {
      return false;
    }
    drop_front(m_size - k_piece_overlap);
  }
  return true;
}

bool TextReader::hand_over_window(TextSink& sink, bool is_end) {
  const std::string_view text(m_buffer.data(), m_size);
  if (is_end) {
    if (!text.empty()) {
      sink.take_lines(text, text.size());
    }
    return false;
  }
  if (m_capacity < k_window) {
    m_capacity *= 2;
    return true;
  }
  m_had_windows = true;
  const std::size_t end = text.find('\n', text.size() / 2);
  const std::size_t done = sink.take_lines(text, end == std::string_view::npos ? text.size() / 2 : end + 1);
  if (done == TextSink::k_enough) {
    return false;
  }
  drop_front(done);
  return true;
}

void TextReader::drop_front(std::size_t bytes) {
  std::memmove(m_buffer.data(), m_buffer.data() + bytes, m_size - bytes);
  m_size -= bytes;
}

}  // namespace dockbridge::agent
