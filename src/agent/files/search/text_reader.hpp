#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dockbridge::agent {

/// Takes the text of a file as it is read.
class TextSink {
 public:
  static constexpr std::size_t k_enough = static_cast<std::size_t>(-1);

  virtual ~TextSink() = default;
  /// Whole lines; the last may lack its end if it is the file's last. The sink is done with those that begin before
  /// `cut` (which begins a line, or ends the text), and maybe with some more: returns where it wants to go on, from
  /// `cut` on, or k_enough if it wants no more.
  virtual std::size_t take_lines(std::string_view text, std::size_t cut) = 0;
  /// A piece of a line that is too long to be held. The first `overlap` bytes have been in the piece before. False: no
  /// more is wanted.
  virtual bool take_piece(std::string_view piece, std::size_t overlap, bool begins, bool ends) = 0;
};

/// Reads text files with one buffer that is used again and again: one for each thread.
class TextReader {
 public:
  enum class Outcome : std::uint8_t { read, binary, unreadable };

  /// Longer lines come in pieces that overlap by k_piece_overlap.
  static constexpr std::size_t k_longest_line = 1024 * 1024;
  static constexpr std::size_t k_piece_overlap = 64 * 1024;
  /// With `windows` a file comes in overlapping texts of up to this size, each cut in its middle.
  static constexpr std::size_t k_window = 2 * 1024 * 1024;

  TextReader();

  /// From the file's start to its end as it is now. A file with a NUL byte is binary, and so is all the sink has taken
  /// of it; UTF-16 with a mark at its start comes as UTF-8. Only a plain file is readable.
  Outcome read(int fd, TextSink& sink, bool windows = false);

  /// Of the last file: whether it did not come as one text of whole lines.
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
  std::size_t m_capacity = 0;  // how much of the buffer is used; grows with lines that do not fit
  std::size_t m_size = 0;      // bytes in the buffer that are text
  std::uint64_t m_offset = 0;  // in the file, of what is read next
  std::uint64_t m_limit = 0;   // the file's size, once that matters; else 0
  bool m_at_end = false;
  Encoding m_encoding = Encoding::bytes;
  std::vector<char> m_raw;  // UTF-16 that is not decoded yet
  std::size_t m_raw_size = 0;
  bool m_in_piece = false;
  bool m_had_long_line = false;
  bool m_had_windows = false;
};

}  // namespace dockbridge::agent
