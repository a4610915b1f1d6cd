#include "agent/files/text/line_comparison.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_lines = 1'000'000;   // lines of either side that are compared one by one
constexpr std::size_t k_max_differences = 1024;  // of a region, for an exact answer; memory is its square
constexpr std::size_t k_max_work = 64'000'000;   // comparisons of lines

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
  std::vector<Region> m_changes;  // in order, not adjacent
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

/// Myers' greedy algorithm: computes, for each number of differences, the furthest position on each diagonal (lines
/// before minus lines after).
bool Comparison::solve_exactly(const Region& region) {
  const auto removed = static_cast<std::ptrdiff_t>(region.removed());
  const auto added = static_cast<std::ptrdiff_t>(region.added());
  const auto most = static_cast<std::ptrdiff_t>(k_max_differences);
  if (std::abs(removed - added) > most) {
    return false;
  }
  // Row d has the diagonals -d to d. A position is a number of lines of `before`.
  std::vector<std::vector<std::int32_t>> rows;
  const auto reached = [&](std::ptrdiff_t d, std::ptrdiff_t diagonal) -> std::ptrdiff_t {
    return rows[static_cast<std::size_t>(d)][static_cast<std::size_t>(diagonal + d)];
  };
  // True if the best way to a diagonal is an added line, not a removed one.
  const auto comes_from_above = [&](std::ptrdiff_t d, std::ptrdiff_t diagonal) {
    return diagonal == -d || (diagonal != d && reached(d - 1, diagonal - 1) < reached(d - 1, diagonal + 1));
  };
  std::ptrdiff_t differences = 0;
  for (bool arrived = false; !arrived; ++differences) {
    if (differences > most || m_work > k_max_work) {
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

/// Lines that occur once in a range, with their hashes.
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

/// Longest subsequence, of pairs sorted by their first number, that is also sorted by the second.
std::vector<Pair> longest_in_order(const std::vector<Pair>& pairs) {
  constexpr std::size_t k_none = SIZE_MAX;
  std::vector<std::size_t> ends;  // end of the best chain of each length, as an index of `pairs`
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

}  // namespace

std::size_t next_line(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('\n', at);
  return end == std::string_view::npos ? text.size() : end + 1;
}

std::size_t count_lines(std::string_view text) {
  const auto ends = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return ends + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

Lines::Lines(std::string_view text) : m_text(text), m_size(count_lines(text)) {
  m_lines.reserve(std::min(m_size, k_max_lines));
  for (std::size_t at = 0; at < text.size() && m_lines.size() < k_max_lines;) {
    const std::size_t end = next_line(text, at);
    m_lines.push_back({end, std::hash<std::string_view>()(text.substr(at, end - at))});
    at = end;
  }
}

std::size_t Lines::bytes(std::size_t first, std::size_t last) const {
  return begin(std::min(last, known())) - begin(std::min(first, known()));
}

std::vector<Region> changed_regions(const Lines& before, const Lines& after) {
  return Comparison(before, after).changes();
}

}  // namespace dockbridge::agent
