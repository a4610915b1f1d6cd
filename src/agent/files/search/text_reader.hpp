#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dockbridge::agent {

/// Receives the text of a file as it is read.
class TextSink {
 public:
  static constexpr std::size_t k_enough = static_cast<std::size_t>(-1);

  virtual ~TextSink() = default;
  /// Receives whole lines. The last line of the file may have no end. The sink handles all lines that begin before
  /// `cut`, which is the start of a line or the end of the text, and may handle more. Returns the position to continue
  /// from, which is not before `cut`, or k_enough to stop.
  virtual std::size_t take_lines(std::string_view text, std::size_t cut) = 0;
  /// Receives a piece of a line that exceeds the buffer. The first `overlap` bytes were in the previous piece too.
  /// Returns false to stop.
  virtual bool take_piece(std::string_view piece, std::size_t overlap, bool begins, bool ends) = 0;
};

/// Reads text files with one reused buffer. Each thread needs its own.
class TextReader {
 public:
  enum class Outcome : std::uint8_t { read, binary, unreadable };

  /// Longer lines are passed on in pieces that overlap by k_piece_overlap.
  static constexpr std::size_t k_max_line_bytes = 1024 * 1024;
  static constexpr std::size_t k_piece_overlap = 64 * 1024;
  /// With `windows`, a file is passed on in overlapping texts of up to this size, each cut in its middle.
  static constexpr std::size_t k_window = 2 * 1024 * 1024;

  TextReader();

  /// Reads the file from its start to its present end. A file with a NUL byte is binary, with all that the sink has
  /// received of it. UTF-16 with a byte order mark is converted to UTF-8. Only a regular file is readable.
  Outcome read(int fd, TextSink& sink, bool windows = false);

  /// True if the last file was not passed on as one text of whole lines.
  [[nodiscard]] bool had_long_line() const { return m_had_long_line; }
  [[nodiscard]] bool had_windows() const { return m_had_windows; }

 private:
  enum class Encoding : std::uint8_t { bytes, utf16_little, utf16_big };
  enum class Filled : std::uint8_t { full, end, binary, unreadable };

  Filled fill(int fd);
  Filled read_more(int fd);
  bool recognise_encoding();
  void decode_utf16(bool is_end);
  bool hand_over(TextSink& sink, bool is_end);
  bool hand_over_window(TextSink& sink, bool is_end);
  void drop_front(std::size_t bytes);

  std::vector<char> m_buffer;
  std::size_t m_capacity = 0;  // usable part of the buffer; grows with lines that do not fit
  std::size_t m_size = 0;      // bytes in the buffer that are text
  std::uint64_t m_offset = 0;  // file offset of the next read
  std::uint64_t m_limit = 0;   // size of the file, once it is needed; 0 before
  bool m_at_end = false;
  Encoding m_encoding = Encoding::bytes;
  std::vector<char> m_raw;  // UTF-16 that is not decoded yet
  std::size_t m_raw_size = 0;
  bool m_in_piece = false;
  bool m_had_long_line = false;
  bool m_had_windows = false;
};

}  // namespace dockbridge::agent
