#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "error/error.hpp"

namespace re2 {
class RE2;
}

namespace dockbridge::agent {

/// Finds the first line of a growing stream that matches a pattern. A line without an end is matched too, so that a
/// prompt is found. Escape sequences are removed before. Holds at most one line, and only the last part of a long one.
class LineSearch {
 public:
  LineSearch(const re2::RE2& pattern, std::uint64_t from) : m_pattern(&pattern), m_line_start(from) {}

  /// Matches the next bytes of the stream. Returns the first matching line, which ends the search.
  std::optional<std::string> feed(std::string_view bytes);
  /// Drops everything before `to`: the start of a long line, or bytes that are no longer stored.
  void skip_to(std::uint64_t to);

  /// Position of the next bytes to feed.
  [[nodiscard]] std::uint64_t offset() const { return m_line_start + m_line.size(); }
  /// Position from which a later search must start, so that it includes the current line.
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

  /// Error `bad_pattern` with the problem.
  static Result<PatternWatch> make(const std::string& pattern, Positions from);
  PatternWatch(PatternWatch&&) noexcept;
  PatternWatch& operator=(PatternWatch&&) noexcept;
  ~PatternWatch();

  /// Matches a bounded amount of the output in the spools. Returns false if there is more.
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
