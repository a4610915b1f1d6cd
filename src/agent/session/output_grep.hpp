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

/// Lines of a stream that match, numbered, with some of those around them, as grep shows them. Counts all, shows the
/// first.
class GrepLines {
 public:
  GrepLines(const re2::RE2& pattern, std::size_t context, std::size_t most)
      : m_pattern(&pattern), m_context(context), m_most(most) {}

  void feed(std::string_view bytes);
  /// The bytes up to `offset` are not there: lines are counted anew behind them.
  void skip_to(std::uint64_t offset);
  /// What has no end is a line too.
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
  std::uint64_t m_number = 0;        // of the last line
  std::deque<std::string> m_before;  // the last lines that were not shown
  std::size_t m_after = 0;           // how many more to show
  std::uint64_t m_last_shown = 0;    // line number
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

  /// Returns true when each stream was searched up to its end as of the first look at it. Later output is not searched,
  /// because a process that prints faster than the search runs would keep it going forever.
  Result<bool> advance(int directory_fd, const std::string& process);
  [[nodiscard]] const GrepLines& out() const { return m_streams[0]; }
  [[nodiscard]] const GrepLines& err() const { return m_streams[1]; }

 private:
  OutputGrep(std::unique_ptr<re2::RE2> pattern, const Order& order);

  std::unique_ptr<re2::RE2> m_pattern;
  std::array<GrepLines, 2> m_streams;
  std::size_t m_current = 0;
  std::optional<std::uint64_t> m_end;  // end of the current stream at the first look
};

}  // namespace dockbridge::agent
