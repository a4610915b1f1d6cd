#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace dockbridge::agent {

/// Start of the line after the one at `at`.
std::size_t next_line(std::string_view text, std::size_t at);
/// Counts lines. A last line without an end counts.
std::size_t count_lines(std::string_view text);

/// Lines of a text, each with its end, and their hashes. Lines beyond the first million are only counted. The text must
/// outlive this object.
class Lines {
 public:
  explicit Lines(std::string_view text);
  [[nodiscard]] std::size_t size() const { return m_size; }
  /// Number of lines that can be accessed.
  [[nodiscard]] std::size_t known() const { return m_lines.size(); }
  [[nodiscard]] std::size_t hash(std::size_t i) const { return m_lines[i].hash; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    return m_text.substr(begin(i), m_lines[i].end - begin(i));
  }
  /// Bytes of the known lines from `first` to before `last`.
  [[nodiscard]] std::size_t bytes(std::size_t first, std::size_t last) const;

 private:
  struct Line {
    std::size_t end;
    std::size_t hash;
  };
  [[nodiscard]] std::size_t begin(std::size_t i) const { return i == 0 ? 0 : m_lines[i - 1].end; }

  std::string_view m_text;
  std::size_t m_size;
  std::vector<Line> m_lines;
};

/// A range of lines on each side.
struct Region {
  std::size_t before_begin = 0;
  std::size_t before_end = 0;
  std::size_t after_begin = 0;
  std::size_t after_end = 0;

  [[nodiscard]] std::size_t removed() const { return before_end - before_begin; }
  [[nodiscard]] std::size_t added() const { return after_end - after_begin; }
};

/// Finds the regions that differ, in order, not adjacent. All lines must be known. Myers' algorithm gives the fewest
/// changed lines. A region with too many differences for that is cut at lines that occur once on each side, and a part
/// that is still too large counts as changed. So time and memory are bounded.
std::vector<Region> changed_regions(const Lines& before, const Lines& after);

}  // namespace dockbridge::agent
