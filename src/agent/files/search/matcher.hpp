#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/search/literal_scan.hpp"
#include "agent/files/search/required_literal.hpp"
#include "error/error.hpp"

namespace re2 {
class RE2;
}

namespace dockbridge::agent {

/// Bytes [begin, end) of a text.
struct Span {
  std::size_t begin;
  std::size_t end;
};

/// A compiled pattern. Matching takes linear time and bounded memory. Immutable; any thread may use it.
class Matcher {
 public:
  struct Options {
    bool literal = false;
    bool ignore_case = false;
    bool whole_word = false;  ///< no letter, digit or underscore right before and after
    bool multi_line = false;  ///< a match may span lines
  };

  /// Error `bad_pattern` with the reason. `^` and `$` match at the ends of lines, with or without a carriage return.
  static Result<Matcher> compile(const std::string& pattern, const Options& options);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  /// Finds the first match in a piece of a line. `begins` and `ends` state whether the piece has the start and the end
  /// of the line, where `^` and `$` match.
  [[nodiscard]] std::optional<Span> find_in_piece(std::string_view piece, bool begins, bool ends) const;
  /// Finds the first match in `within`, which is a line of `text`; with multi-line, one or more lines.
  [[nodiscard]] std::optional<Span> find_in_lines(std::string_view text, Span within) const;

  class LineCursor;

 private:
  Matcher();
  [[nodiscard]] bool holds(std::string_view text, Span line) const;
  [[nodiscard]] std::optional<Span> find(std::string_view text, Span within) const;

  bool m_multi_line = false;
  bool m_whole_word = false;
  bool m_line_by_line = false;          // the pattern can distinguish the ends of the text from those of a line
  bool m_is_literal = false;            // the pattern is a plain text, the only one in m_literals
  std::vector<LiteralScan> m_literals;  // every match contains one of them; empty means unknown
  std::unique_ptr<re2::RE2> m_regex;    // null if the pattern is a literal
};

/// Iterates over the matching lines of a text; with multi-line, over the blocks of lines that a match spans. `text`
/// must outlive it.
class Matcher::LineCursor {
 public:
  LineCursor(const Matcher& matcher, std::string_view text);

  /// The next line without its end. Blocks have no line in common.
  std::optional<Span> next();

 private:
  std::size_t next_candidate();
  std::optional<Span> next_in_each_line();
  [[nodiscard]] Span lines_of(Span match) const;

  const Matcher& m_matcher;
  std::string_view m_text;
  std::size_t m_at = 0;                                          // start of a line
  std::array<std::size_t, k_max_required_literals> m_literal{};  // next position of each literal
};

}  // namespace dockbridge::agent
