#include "agent/files/text/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "agent/files/text/line_comparison.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_shown_line_bytes = 1000;

/// Writes hunks up to the size limit, and counts the changes that do not fit.
class Writer {
 public:
  /// `lines_ahead` is the number of equal lines before those in `before` and `after`.
  Writer(const Lines& before, const Lines& after, std::size_t lines_ahead, const DiffLimits& limits, Diff& diff)
      : m_before(before), m_after(after), m_lines_ahead(lines_ahead), m_limits(limits), m_diff(diff) {}

  void write(std::span<const Region> changes);

 private:
  /// Returns the number of changes that fit.
  std::size_t write_hunk(std::span<const Region> changes);
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
    changes = changes.subspan(write_hunk(changes.first(count)));
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

std::size_t Writer::write_hunk(std::span<const Region> changes) {
  const Region& first = changes.front();
  const Region& last = changes.back();
  const std::size_t ahead = std::min(m_limits.context, first.before_begin);
  const std::size_t behind = std::min(m_limits.context, m_before.size() - last.before_end);
  m_diff.text += fmt::format("@@ -{} +{} @@\n", range(first.before_begin - ahead, last.before_end + behind),
                             range(first.after_begin - ahead, last.after_end + behind));
  std::size_t at = first.before_begin - ahead;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0 && room() == 0) {
      return i;
    }
    write_context(at, changes[i].before_begin);
    write_change(changes[i]);
    at = changes[i].before_end;
  }
  write_context(at, at + behind);
  return changes.size();
}

void Writer::write_context(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < std::min(end, m_before.known()) && room() > 0; ++i) {
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

/// First byte that is shown of a long line: shortly before the first difference.
std::size_t Writer::first_shown_byte(const Region& change, std::size_t i) const {
  constexpr std::size_t k_lead_bytes = 100;
  if (change.removed() != change.added() || change.before_begin + i >= m_before.known() ||
      change.after_begin + i >= m_after.known()) {
    return 0;
  }
  const std::string_view before = m_before[change.before_begin + i];
  const std::string_view after = m_after[change.after_begin + i];
  if (before.size() <= k_max_shown_line_bytes && after.size() <= k_max_shown_line_bytes) {
    return 0;
  }
  const auto differs = std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first;
  const auto same = static_cast<std::size_t>(differs - before.begin());
  if (same < k_max_shown_line_bytes / 2) {
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
  if (line.size() > k_max_shown_line_bytes) {
    std::string_view shown = line.substr(0, k_max_shown_line_bytes);
    shown.remove_suffix(incomplete_utf8_tail(shown));
    m_diff.text += fmt::format("{}…[{} more bytes]", shown, line.size() - shown.size());
    m_diff.cut = true;
  } else {
    m_diff.text += line;
  }
  m_diff.text += ends ? "\n" : "\n\\ No newline at end of file\n";
}

/// Writes a path like git: relative, and quoted if it contains bytes that would break the line.
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

/// Bytes that are compared at once: the C library compares blocks faster than a loop over bytes.
constexpr std::size_t k_compared_bytes = 1024;

/// Number of equal bytes at the start of both texts.
std::size_t same_at_start(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same + k_compared_bytes <= most && a.substr(same, k_compared_bytes) == b.substr(same, k_compared_bytes)) {
    same += k_compared_bytes;
  }
  while (same < most && a[same] == b[same]) {
    ++same;
  }
  return same;
}

/// Number of equal bytes at the end of both texts.
std::size_t same_at_end(std::string_view a, std::string_view b) {
  const auto last = [](std::string_view text, std::size_t count) { return text.substr(text.size() - count); };
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same + k_compared_bytes <= most && last(a, same + k_compared_bytes).substr(0, k_compared_bytes) ==
                                                last(b, same + k_compared_bytes).substr(0, k_compared_bytes)) {
    same += k_compared_bytes;
  }
  while (same < most && last(a, same + 1).front() == last(b, same + 1).front()) {
    ++same;
  }
  return same;
}

/// Number of bytes of the equal lines at the start of both texts.
std::size_t common_start(std::string_view before, std::string_view after) {
  const std::size_t same = same_at_start(before, after);
  const std::size_t line_end = same == 0 ? std::string_view::npos : before.rfind('\n', same - 1);
  return line_end == std::string_view::npos ? 0 : line_end + 1;
}

/// Number of bytes of the equal lines at the end of both texts, which start with a line.
std::size_t common_end(std::string_view before, std::string_view after) {
  const std::size_t same = same_at_end(before, after);
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
      all_known ? changed_regions(lines_before, lines_after) : std::vector<Region>{whole};
  for (const Region& change : changes) {
    diff.added += change.added();
    diff.removed += change.removed();
  }
  diff.text = fmt::format("--- {}\n+++ {}\n", header_name('a', path), header_name('b', path));
  Writer(lines_before, lines_after, count_lines(before.substr(0, start)), limits, diff).write(changes);
  return diff;
}

}  // namespace dockbridge::agent
