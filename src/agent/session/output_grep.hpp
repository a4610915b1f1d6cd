#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "wire/output_messages.hpp"

namespace re2 {
class RE2;
}

namespace dockbridge::agent {

/// Matching lines of a stream with their numbers and context, as grep shows them. All matches are counted, and the
/// first ones are shown.
class GrepLines {
 public:
  GrepLines(const re2::RE2& pattern, std::size_t context, std::size_t most)
      : m_pattern(&pattern), m_context(context), m_most(most) {}

  void feed(std::string_view bytes);
  /// Skips bytes that are no longer stored. Line numbers restart at `offset`.
  void skip_to(std::uint64_t offset);
  /// Ends the last line, which may have no newline.
  void finish();

  [[nodiscard]] std::uint64_t offset() const { return m_offset; }
  [[nodiscard]] std::uint64_t matches() const { return m_matches; }
  [[nodiscard]] std::uint64_t shown() const { return m_shown; }
  [[nodiscard]] const std::string& text() const { return m_text; }

 private:
  void take_line();
  void show(std::uint64_t number, char mark, const std::string& line);

  const re2::RE2* m_pattern;
  std::size_t m_context;
  std::size_t m_most;
  std::uint64_t m_offset = 0;
  std::string m_line;
  std::uint64_t m_number = 0;        ///< of the latest line
  std::deque<std::string> m_before;  ///< the latest lines that were not shown
  std::size_t m_after = 0;           ///< number of lines to show after the latest match
  std::uint64_t m_last_shown = 0;    ///< line number
  std::uint64_t m_matches = 0;
  std::uint64_t m_shown = 0;
  std::string m_text;
};

/// Searches the stored output of a process, a bounded piece at a time.
class OutputGrep {
 public:
  using Order = wire::GrepQuery;

  /// Error `bad_pattern`.
  static Result<OutputGrep> make(const Order& order);
  OutputGrep(OutputGrep&&) noexcept;
  OutputGrep& operator=(OutputGrep&&) noexcept;
  ~OutputGrep();

  /// Returns true when each stream was searched up to the end that it had when its search began. Later output is not
  /// searched, because a process that prints faster than the search runs would prolong it forever.
  Result<bool> advance(int directory_fd, const std::string& process);
  [[nodiscard]] const GrepLines& out() const { return m_streams[0]; }
  [[nodiscard]] const GrepLines& err() const { return m_streams[1]; }

 private:
  OutputGrep(std::unique_ptr<re2::RE2> pattern, const Order& order);

  std::unique_ptr<re2::RE2> m_pattern;
  std::array<GrepLines, 2> m_streams;
  std::size_t m_current = 0;
  std::optional<std::uint64_t> m_end;  ///< end of the current stream when its search began
};

}  // namespace dockbridge::agent
