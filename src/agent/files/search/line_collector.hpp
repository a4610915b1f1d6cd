#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "agent/files/search/matcher.hpp"
#include "agent/files/search/search.hpp"
#include "agent/files/search/text_reader.hpp"

namespace dockbridge::agent {

/// Collects the lines to show of one file: some of its matches, numbered, with the lines around them.
class LineCollector : public TextSink {
 public:
  struct Order {
    std::uint64_t skip = 0;  ///< matches
    std::size_t take = 0;    ///< matches
    std::size_t context = 0;
    std::size_t max_line_bytes = 0;
    std::size_t max_text_bytes = 0;  ///< total of all lines; ends the page early
  };

  LineCollector(const Matcher& matcher, const Order& order) : m_matcher(matcher), m_order(order) {}

  std::size_t take_lines(std::string_view text, std::size_t cut) override;
  bool take_piece(std::string_view piece, std::size_t overlap, bool begins, bool ends) override;

  [[nodiscard]] std::size_t taken() const { return m_taken; }
  [[nodiscard]] std::size_t text_bytes() const { return m_text_bytes; }
  [[nodiscard]] std::vector<FoundLine>& lines() { return m_lines; }

 private:
  void pass(std::string_view text, std::size_t from, std::size_t to);
  void take_block(std::string_view text, Span block);
  void show_before();
  void show(FoundLine line);
  void remember(FoundLine line);
  [[nodiscard]] FoundLine cut(std::string_view line, Span around, std::uint64_t line_offset) const;
  [[nodiscard]] bool is_full() const;

  const Matcher& m_matcher;
  Order m_order;
  std::uint64_t m_number = 0;  // lines that were passed
  std::uint64_t m_skipped = 0;
  std::size_t m_taken = 0;
  std::size_t m_after = 0;  // lines still to show as context
  std::size_t m_text_bytes = 0;
  std::deque<FoundLine> m_before;  // the last lines that were not shown
  std::vector<FoundLine> m_lines;

  // State of a line that is searched in pieces:
  std::uint64_t m_line_bytes = 0;  // so far
  bool m_line_matched = false;
  FoundLine m_long_line;
};

}  // namespace dockbridge::agent
