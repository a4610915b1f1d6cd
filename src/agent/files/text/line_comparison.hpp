#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace dockbridge::agent {

/// Where the line after the one at `at` begins.
std::size_t next_line(std::string_view text, std::size_t at);
/// What comes after the last line end is a line too.
std::size_t count_lines(std::string_view text);

/// The lines of a text that outlives this, each with its end, and hashes to compare them by. Those beyond a million are
/// only counted.
class Lines {
 public:
  explicit Lines(std::string_view text);
  [[nodiscard]] std::size_t size() const { return m_size; }
  /// Only these can be asked for.
  [[nodiscard]] std::size_t known() const { return m_lines.size(); }
  [[nodiscard]] std::size_t hash(std::size_t i) const { return m_lines[i].hash; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    return m_text.substr(begin(i), m_lines[i].end - begin(i));
  }
  /// Of the lines from `first` to before `last`, as far as they are known.
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

/// A range of lines on either side.
struct Region {
  std::size_t before_begin = 0;
  std::size_t before_end = 0;
  std::size_t after_begin = 0;
  std::size_t after_end = 0;

  [[nodiscard]] std::size_t removed() const { return before_end - before_begin; }
  [[nodiscard]] std::size_t added() const { return after_end - after_begin; }
};

/// The regions that differ, in order, none touching the next. All lines must be known. The fewest lines that can be, by
/// Myers' algorithm; a region with too many differences for that is cut at lines that occur once on either side, and
/// what is still too much is taken as a whole. So time and memory are bounded.
std::vector<Region> changed_regions(const Lines& before, const Lines& after);

}  // namespace dockbridge::agent
