#include "agent/files/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_most_lines = 1'000'000;     // of either side that are compared one by one
constexpr std::size_t k_most_differences = 1024;    // of a region, for an exact answer; memory is its square
constexpr std::size_t k_most_work = 64'000'000;     // comparisons of lines
constexpr std::size_t k_longest_shown_line = 1000;  // bytes

/// Where the line after the one at `at` begins.
std::size_t next_line(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('\n', at);
  return end == std::string_view::npos ? text.size() : end + 1;
}

std::size_t count_lines(std::string_view text) {
  const auto ends = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return ends + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

/// The lines of a part of a text, each with its end, and hashes to compare them by. Too many are only counted.
class Lines {
 public:
  explicit Lines(std::string_view text) : m_text(text), m_size(count_lines(text)) {
    m_lines.reserve(std::min(m_size, k_most_lines));
    for (std::size_t at = 0; at < text.size() && m_lines.size() < k_most_lines;) {
      const std::size_t end = next_line(text, at);
      m_lines.push_back({end, std::hash<std::string_view>()(text.substr(at, end - at))});
      at = end;
    }
  }
  [[nodiscard]] std::size_t size() const { return m_size; }
  [[nodiscard]] std::size_t known() const { return m_lines.size(); }
  [[nodiscard]] std::size_t hash(std::size_t i) const { return m_lines[i].hash; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    return m_text.substr(begin(i), m_lines[i].end - begin(i));
  }
  [[nodiscard]] std::size_t bytes(std::size_t first, std::size_t last) const {
    return begin(std::min(last, known())) - begin(std::min(first, known()));
  }

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

/// Finds the regions that differ, by Myers' algorithm; those with too many differences for it are cut at lines that
/// occur once on either side, and what is still too much is taken as a whole.
class Comparison {
 public:
  Comparison(const Lines& before, const Lines& after) : m_before(before), m_after(after) {}

  std::vector<Region> changes() {
    solve({0, m_before.size(), 0, m_after.size()}, true);
    return std::move(m_changes);
  }

 private:
  [[nodiscard]] bool equal(std::size_t before, std::size_t after) const {
    return m_before.hash(before) == m_after.hash(after) && m_before[before] == m_after[after];
  }
  [[nodiscard]] Region trimmed(Region region) const;
  void solve(Region region, bool may_split);
  bool solve_exactly(const Region& region);
  bool split_at_unique_lines(const Region& region);
  void add(const Region& change);

  const Lines& m_before;
  const Lines& m_after;
  std::size_t m_work = 0;
  std::vector<Region> m_changes;  // in order, none touching the next
};

Region Comparison::trimmed(Region region) const {
  while (region.removed() > 0 && region.added() > 0 && equal(region.before_begin, region.after_begin)) {
    ++region.before_begin;
    ++region.after_begin;
  }
  while (region.removed() > 0 && region.added() > 0 && equal(region.before_end - 1, region.after_end - 1)) {
    --region.before_end;
    --region.after_end;
  }
  return region;
}

void Comparison::solve(Region region, bool may_split) {
  region = trimmed(region);
  if (region.removed() == 0 || region.added() == 0) {
    add(region);
  } else if (!solve_exactly(region) && !(may_split && split_at_unique_lines(region))) {
    add(region);
  }
}

void Comparison::add(const Region& change) {
  if (change.removed() == 0 && change.added() == 0) {
    return;
  }
  if (!m_changes.empty() && m_changes.back().before_end == change.before_begin &&
      m_changes.back().after_end == change.after_begin) {
    m_changes.back().before_end = change.before_end;
    m_changes.back().after_end = change.after_end;
  } else {
    m_changes.push_back(change);
  }
}

/// The greedy algorithm: for each number of differences, how far one comes on each diagonal (lines before less lines
/// after).
bool Comparison::solve_exactly(const Region& region) {
  const auto removed = static_cast<std::ptrdiff_t>(region.removed());
  const auto added = static_cast<std::ptrdiff_t>(region.added());
  const auto most = static_cast<std::ptrdiff_t>(k_most_differences);
  if (std::abs(removed - added) > most) {
    return false;
  }
  // Row d holds the diagonals -d to d. A place is the number of lines of `before` behind it.
  std::vector<std::vector<std::int32_t>> rows;
  const auto reached = [&](std::ptrdiff_t d, std::ptrdiff_t diagonal) -> std::ptrdiff_t {
    return rows[static_cast<std::size_t>(d)][static_cast<std::size_t>(diagonal + d)];
  };
  /// Whether the best way to a diagonal is an added line, rather than a removed one.
  const auto comes_from_above = [&](std::ptrdiff_t d, std::ptrdiff_t diagonal) {
    return diagonal == -d || (diagonal != d && reached(d - 1, diagonal - 1) < reached(d - 1, diagonal + 1));
  };
  std::ptrdiff_t differences = 0;
  for (bool arrived = false; !arrived; ++differences) {
    if (differences > most || m_work > k_most_work) {
      return false;
    }
    const std::ptrdiff_t d = differences;
    rows.emplace_back(static_cast<std::size_t>(2 * d + 1), -1);
    for (std::ptrdiff_t diagonal = -d; diagonal <= d && !arrived; diagonal += 2) {
      std::ptrdiff_t x = 0;
      if (d > 0) {
        x = comes_from_above(d, diagonal) ? reached(d - 1, diagonal + 1) : reached(d - 1, diagonal - 1) + 1;
      }
      while (x < removed && x - diagonal < added &&
             equal(region.before_begin + static_cast<std::size_t>(x),
                   region.after_begin + static_cast<std::size_t>(x - diagonal))) {
        ++x;
        ++m_work;
      }
      ++m_work;
      rows.back()[static_cast<std::size_t>(diagonal + d)] = static_cast<std::int32_t>(x);
      arrived = x >= removed && x - diagonal >= added;
    }
  }
  std::vector<Region> steps;  // last first
  std::ptrdiff_t diagonal = removed - added;
  for (std::ptrdiff_t d = differences - 1; d > 0; --d) {
    const bool is_added = comes_from_above(d, diagonal);
    diagonal += is_added ? 1 : -1;
    const std::ptrdiff_t x = reached(d - 1, diagonal);
    const std::size_t before = region.before_begin + static_cast<std::size_t>(x);
    const std::size_t after = region.after_begin + static_cast<std::size_t>(x - diagonal);
    steps.push_back({before, before + (is_added ? 0 : 1), after, after + (is_added ? 1 : 0)});
  }
  std::for_each(steps.rbegin(), steps.rend(), [this](const Region& step) { add(step); });
  return true;
}

/// The lines of a range that occur once in it, by hash.
std::vector<std::pair<std::size_t, std::size_t>> unique_lines(const Lines& lines, std::size_t begin, std::size_t end) {
  std::vector<std::pair<std::size_t, std::size_t>> sorted;
  sorted.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    sorted.emplace_back(lines.hash(i), i);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<std::size_t, std::size_t>> unique;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const bool like_last = i > 0 && sorted[i - 1].first == sorted[i].first;
    const bool like_next = i + 1 < sorted.size() && sorted[i + 1].first == sorted[i].first;
    if (!like_last && !like_next) {
      unique.push_back(sorted[i]);
    }
  }
  return unique;
}

using Pair = std::pair<std::size_t, std::size_t>;

/// Of pairs sorted by their first number, the most that are also in order of their second.
std::vector<Pair> longest_in_order(const std::vector<Pair>& pairs) {
  constexpr std::size_t k_none = SIZE_MAX;
  std::vector<std::size_t> ends;  // of the best chain of each length, as indices of pairs
  std::vector<std::size_t> previous(pairs.size(), k_none);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto place =
        std::lower_bound(ends.begin(), ends.end(), pairs[i].second,
                         [&](std::size_t end, std::size_t second) { return pairs[end].second < second; });
    if (place != ends.begin()) {
      previous[i] = *(place - 1);
    }
    if (place == ends.end()) {
      ends.push_back(i);
    } else {
      *place = i;
    }
  }
  std::vector<Pair> chain;
  for (std::size_t i = ends.empty() ? k_none : ends.back(); i != k_none; i = previous[i]) {
    chain.push_back(pairs[i]);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

bool Comparison::split_at_unique_lines(const Region& region) {
  const auto before = unique_lines(m_before, region.before_begin, region.before_end);
  const auto after = unique_lines(m_after, region.after_begin, region.after_end);
  std::vector<Pair> common;
  for (auto i = before.begin(), j = after.begin(); i != before.end() && j != after.end();) {
    if (i->first != j->first) {
      i->first < j->first ? ++i : ++j;
      continue;
    }
    if (equal(i->second, j->second)) {
      common.emplace_back(i->second, j->second);
    }
    ++i;
    ++j;
  }
  std::sort(common.begin(), common.end());
  Region rest = region;
  for (const auto& [in_before, in_after] : longest_in_order(common)) {
    solve({rest.before_begin, in_before, rest.after_begin, in_after}, false);
    rest.before_begin = in_before + 1;
    rest.after_begin = in_after + 1;
  }
  if (common.empty()) {
    return false;
  }
  solve(rest, false);
  return true;
}

/// Writes hunks until there is no more room, and counts what does not fit.
class Writer {
 public:
  /// `lines_ahead` of what the Lines hold are the same on both sides.
  Writer(const Lines& before, const Lines& after, std::size_t lines_ahead, const DiffLimits& limits, Diff& diff)
      : m_before(before), m_after(after), m_lines_ahead(lines_ahead), m_limits(limits), m_diff(diff) {}

  void write(std::span<const Region> changes);

 private:
  void write_hunk(std::span<const Region> changes);
  void write_change(const Region& change);
  void write_context(std::size_t begin, std::size_t end);
  void write_line(char mark, std::string_view line, std::size_t from);
  [[nodiscard]] std::size_t room() const {
    return m_limits.max_bytes - std::min(m_limits.max_bytes, m_diff.text.size());
  }
  [[nodiscard]] std::size_t first_shown_byte(const Region& change, std::size_t i) const;
  [[nodiscard]] std::string range(std::size_t begin, std::size_t end) const;
  void note(const std::string& what) {
    m_diff.text += fmt::format("[{}]\n", what);
    m_diff.cut = true;
  }

  const Lines& m_before;
  const Lines& m_after;
  std::size_t m_lines_ahead;
  DiffLimits m_limits;
  Diff& m_diff;
};

void Writer::write(std::span<const Region> changes) {
  while (!changes.empty() && room() > 0) {
    std::size_t count = 1;
    while (count < changes.size() &&
           changes[count].before_begin - changes[count - 1].before_end <= 2 * m_limits.context) {
      ++count;
    }
    write_hunk(changes.first(count));
    changes = changes.subspan(count);
  }
  if (!changes.empty()) {
    std::size_t added = 0;
    std::size_t removed = 0;
    for (const Region& change : changes) {
      added += change.added();
      removed += change.removed();
    }
    note(fmt::format("{} more changes further on, with {} lines added and {} removed", changes.size(), added, removed));
  }
}

std::string Writer::range(std::size_t begin, std::size_t end) const {
  const std::size_t count = end - begin;
  const std::size_t first = m_lines_ahead + begin + (count == 0 ? 0 : 1);
  return count == 1 ? fmt::format("{}", first) : fmt::format("{},{}", first, count);
}

void Writer::write_hunk(std::span<const Region> changes) {
  const Region& first = changes.front();
  const Region& last = changes.back();
  const std::size_t ahead = std::min(m_limits.context, first.before_begin);
  const std::size_t behind = std::min(m_limits.context, m_before.size() - last.before_end);
  m_diff.text += fmt::format("@@ -{} +{} @@\n", range(first.before_begin - ahead, last.before_end + behind),
                             range(first.after_begin - ahead, last.after_end + behind));
  std::size_t at = first.before_begin - ahead;
  for (const Region& change : changes) {
    write_context(at, change.before_begin);
    write_change(change);
    at = change.before_end;
  }
  write_context(at, at + behind);
}

void Writer::write_context(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < std::min(end, m_before.known()); ++i) {
    write_line(' ', m_before[i], 0);
  }
}

void Writer::write_change(const Region& change) {
  const auto write_side = [&](char mark, const Lines& lines, std::size_t begin, std::size_t end,
                              std::size_t most_bytes) {
    const std::size_t full = m_diff.text.size() + most_bytes;
    std::size_t i = begin;
    while (i < std::min(end, lines.known()) && m_diff.text.size() < full) {
      write_line(mark, lines[i], first_shown_byte(change, i - begin));
      ++i;
    }
    if (i < end) {
      note(fmt::format("{} more lines {}", end - i, mark == '-' ? "removed" : "added"));
    }
  };
  const std::size_t for_added = std::min(room() / 2, m_after.bytes(change.after_begin, change.after_end));
  write_side('-', m_before, change.before_begin, change.before_end, room() - for_added);
  write_side('+', m_after, change.after_begin, change.after_end, room());
}

/// Where a long line is shown from: shortly before the place that is different in it.
std::size_t Writer::first_shown_byte(const Region& change, std::size_t i) const {
  constexpr std::size_t k_lead_bytes = 100;
  if (change.removed() != change.added() || change.before_begin + i >= m_before.known() ||
      change.after_begin + i >= m_after.known()) {
    return 0;
  }
  const std::string_view before = m_before[change.before_begin + i];
  const std::string_view after = m_after[change.after_begin + i];
  if (before.size() <= k_longest_shown_line && after.size() <= k_longest_shown_line) {
    return 0;
  }
  const auto differs = std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first;
  const auto same = static_cast<std::size_t>(differs - before.begin());
  if (same < k_longest_shown_line / 2) {
    return 0;
  }
  const std::size_t from = same - k_lead_bytes;
  return from + partial_utf8_start(before.substr(from));
}

void Writer::write_line(char mark, std::string_view line, std::size_t from) {
  const bool ends = line.ends_with('\n');
  line.remove_suffix(ends ? 1 : 0);
  m_diff.text.push_back(mark);
  if (from > 0 && from < line.size()) {
    m_diff.text += fmt::format("[{} bytes]…", from);
    m_diff.cut = true;
    line.remove_prefix(from);
  }
  if (line.size() > k_longest_shown_line) {
    std::string_view shown = line.substr(0, k_longest_shown_line);
    shown.remove_suffix(incomplete_utf8_tail(shown));
    m_diff.text += fmt::format("{}…[{} more bytes]", shown, line.size() - shown.size());
    m_diff.cut = true;
  } else {
    m_diff.text += line;
  }
  m_diff.text += ends ? "\n" : "\n\\ No newline at end of file\n";
}

/// As git writes it: relative, and quoted if it holds what would break the line.
std::string header_name(char side, std::string_view path) {
  while (path.starts_with('/')) {
    path.remove_prefix(1);
  }
  std::string name;
  bool quoted = false;
  for (const char c : path) {
    if (c == '"' || c == '\\') {
      name += {'\\', c};
      quoted = true;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      name += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
      quoted = true;
    } else {
      name.push_back(c);
    }
  }
  if (quoted) {
    return fmt::format("\"{}/{}\"", side, name);
  }
  // After a name with a space patch(1) needs a tab to see its end.
  return fmt::format("{}/{}{}", side, name, name.find(' ') == std::string::npos ? "" : "\t");
}

/// How much at the start of both texts is the same, in whole lines.
std::size_t common_start(std::string_view before, std::string_view after) {
  const std::size_t shorter = std::min(before.size(), after.size());
  const auto differs =
      std::mismatch(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(shorter), after.begin());
  const auto same = static_cast<std::size_t>(differs.first - before.begin());
  const std::size_t line_end = same == 0 ? std::string_view::npos : before.rfind('\n', same - 1);
  return line_end == std::string_view::npos ? 0 : line_end + 1;
}

/// How much at the end of both is the same, in whole lines; both start with a line.
std::size_t common_end(std::string_view before, std::string_view after) {
  const std::size_t shorter = std::min(before.size(), after.size());
  const auto differs =
      std::mismatch(before.rbegin(), before.rbegin() + static_cast<std::ptrdiff_t>(shorter), after.rbegin());
  const auto same = static_cast<std::size_t>(differs.first - before.rbegin());
  const auto at_line_start = [same](std::string_view text) {
    return text.size() == same || text[text.size() - same - 1] == '\n';
  };
  if (at_line_start(before) && at_line_start(after)) {
    return same;
  }
  return before.size() - next_line(before, before.size() - same);
}

}  // namespace

Diff unified_diff(std::string_view before, std::string_view after, const std::string& path, const DiffLimits& limits) {
  Diff diff;
  if (before == after) {
    return diff;
  }
  std::size_t start = common_start(before, after);
  std::size_t end = common_end(before.substr(start), after.substr(start));
  std::size_t ahead = 0;
  std::size_t behind = 0;
  for (; ahead < limits.context && start > 0; ++ahead) {
    start = start == 1 ? 0 : before.rfind('\n', start - 2) + 1;
  }
  for (; behind < limits.context && end > 0; ++behind) {
    end = before.size() - next_line(before, before.size() - end);
  }
  const Lines lines_before(before.substr(start, before.size() - end - start));
  const Lines lines_after(after.substr(start, after.size() - end - start));
  const bool all_known = lines_before.size() == lines_before.known() && lines_after.size() == lines_after.known();
  const Region whole = {ahead, lines_before.size() - behind, ahead, lines_after.size() - behind};
  const std::vector<Region> changes =
      all_known ? Comparison(lines_before, lines_after).changes() : std::vector<Region>{whole};
  for (const Region& change : changes) {
    diff.added += change.added();
    diff.removed += change.removed();
  }
  diff.text = fmt::format("--- {}\n+++ {}\n", header_name('a', path), header_name('b', path));
  Writer(lines_before, lines_after, count_lines(before.substr(0, start)), limits, diff).write(changes);
  return diff;
}

}  // namespace dockbridge::agent
