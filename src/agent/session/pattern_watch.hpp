#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/spool.hpp"
#include "error/error.hpp"

namespace re2 {
class RE2;
}

namespace dockbridge::agent {

/// Finds the first line of a stream that matches a pattern, while the stream grows. A line that has no end yet is
/// looked at too, so that a prompt is found; escape sequences are not seen. Holds no more than one line, and of a very
/// long one only its last part.
class LineSearch {
 public:
  LineSearch(const re2::RE2& pattern, std::uint64_t from) : m_pattern(&pattern), m_line_start(from) {}

  /// The next bytes of the stream. Returns the line that matches, if one does; there is no going on after that.
  std::optional<std::string> feed(std::string_view bytes);
  /// The bytes from `offset` to `to` are lost.
  void skip_to(std::uint64_t to);

  /// Where the next bytes have to come from.
  [[nodiscard]] std::uint64_t offset() const { return m_line_start + m_line.size(); }
  /// Where a later search has to begin in order not to miss the line that is being looked at.
  [[nodiscard]] std::uint64_t line_start() const { return m_line_start; }

 private:
  [[nodiscard]] std::optional<std::string> match() const;

  const re2::RE2* m_pattern;
  std::uint64_t m_line_start;
  std::string m_line;
};

/// Watches both streams of a process for a pattern.
class PatternWatch {
 public:
  struct Positions {
    std::uint64_t out = 0;
    std::uint64_t err = 0;
  };
  struct Match {
    bool is_err = false;
    std::string line;
  };

  /// Error `bad_pattern` with what is wrong with it.
  static Result<PatternWatch> make(const std::string& pattern, Positions from);
  PatternWatch(PatternWatch&&) noexcept;
  PatternWatch& operator=(PatternWatch&&) noexcept;
  ~PatternWatch();

  /// Looks at what the spools have by now, at most a bounded piece of it: false if there is more.
  Result<bool> advance(int directory_fd, const std::string& process);

  [[nodiscard]] const std::optional<Match>& match() const { return m_match; }
  [[nodiscard]] Positions positions() const { return {m_searches[0].line_start(), m_searches[1].line_start()}; }

 private:
  PatternWatch(std::unique_ptr<re2::RE2> pattern, Positions from);

  std::unique_ptr<re2::RE2> m_pattern;
  std::array<LineSearch, 2> m_searches;  // stdout, stderr
  std::optional<Match> m_match;
};

}  // namespace dockbridge::agent
