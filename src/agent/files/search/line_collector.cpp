#include "agent/files/search/line_collector.hpp"

#include <algorithm>
#include <utility>

#include "agent/files/text/encoding.hpp"

namespace dockbridge::agent {

namespace {

/// Start of the character at `at`, so no character is split. `at` itself if the bytes are not UTF-8.
std::size_t character_start(std::string_view text, std::size_t at) {
  constexpr std::size_t k_max_character_bytes = 4;
  std::size_t start = at;
  while (start > 0 && start < text.size() && at - start < k_max_character_bytes && !begins_character(text[start])) {
    --start;
  }
  return at - start < k_max_character_bytes ? start : at;
}

std::string_view without_return(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

}  // namespace

bool LineCollector::is_full() const {
  return m_taken == m_order.take || m_text_bytes >= m_order.max_text_bytes;
}

std::size_t LineCollector::take_lines(std::string_view text, std::size_t cut) {
  Matcher::LineCursor cursor(m_matcher, text);
  std::size_t at = 0;  // start of the first line that was neither shown nor passed
  std::size_t done = cut;
  while (!is_full()) {
    const auto block = cursor.next();
    if (!block || block->begin >= cut) {
      break;
    }
    done = std::max(done, std::min(block->end + 1, text.size()));
    if (m_skipped < m_order.skip) {
      ++m_skipped;
      continue;
    }
    pass(text, at, block->begin);
    show_before();
    take_block(text, *block);
    at = std::min(block->end + 1, text.size());
  }
  pass(text, at, done);
  return is_full() && m_after == 0 ? k_enough : done;
}

/// Passes lines without a match, or with a match that is not on this page.
void LineCollector::pass(std::string_view text, std::size_t from, std::size_t to) {
  while (m_after > 0 && from < to) {
    const std::size_t end = std::min(text.find('\n', from), to);
    FoundLine line = cut(without_return(text.substr(from, end - from)), {0, 0}, 0);
    line.number = ++m_number;
    --m_after;
    show(std::move(line));
    from = std::min(end + 1, to);
  }
  if (from >= to || is_full()) {
    return;
  }
  const std::string_view passed = text.substr(from, to - from);
  const auto ends = static_cast<std::uint64_t>(std::count(passed.begin(), passed.end(), '\n'));
  const std::uint64_t lines = ends + (passed.ends_with('\n') ? 0 : 1);
  std::size_t begin = passed.size();
  std::uint64_t remembered = 0;
  while (remembered < std::min<std::uint64_t>(lines, m_order.context)) {
    const std::size_t last = begin - (passed[begin - 1] == '\n' ? 1 : 0);
    const std::size_t before = last == 0 ? std::string_view::npos : passed.rfind('\n', last - 1);
    begin = before == std::string_view::npos ? 0 : before + 1;
    ++remembered;
  }
  m_number += lines - remembered;
  while (begin < passed.size()) {
    const std::size_t end = std::min(passed.find('\n', begin), passed.size());
    FoundLine line = cut(without_return(passed.substr(begin, end - begin)), {0, 0}, 0);
    line.number = ++m_number;
    remember(std::move(line));
    begin = end + 1;
  }
}

void LineCollector::take_block(std::string_view text, Span block) {
  const auto match = m_matcher.find_in_lines(text, block);
  const Span found = match.value_or(Span{block.begin, block.begin});
  for (std::size_t begin = block.begin; begin <= block.end;) {
    const std::size_t end = std::min(text.find('\n', begin), block.end);
    const std::string_view line = text.substr(begin, end - begin);
    const bool is_first = found.begin >= begin && found.begin <= end;
    const Span around = is_first ? Span{found.begin - begin, std::min(found.end, end) - begin} : Span{0, 0};
    FoundLine shown = cut(without_return(line), around, 0);
    shown.number = ++m_number;
    shown.matches = true;
    shown.column = is_first ? around.begin + 1 : 0;
    show(std::move(shown));
    begin = end + 1;
  }
  ++m_taken;
  m_after = m_order.context;
}

bool LineCollector::take_piece(std::string_view piece, std::size_t overlap, bool begins, bool ends) {
  if (begins) {
    m_line_bytes = 0;
    m_line_matched = false;
    m_long_line = cut(piece, {0, 0}, 0);
  }
  const std::uint64_t offset = m_line_bytes - overlap;
  m_line_bytes += piece.size() - overlap;
  if (!m_line_matched && !is_full()) {
    if (const auto match = m_matcher.find_in_piece(piece, begins, ends)) {
      m_line_matched = true;
      if (m_skipped < m_order.skip) {
        ++m_skipped;
      } else {
        m_long_line = cut(piece, *match, offset);
        m_long_line.matches = true;
        m_long_line.column = offset + match->begin + 1;
      }
    }
  }
  if (!ends) {
    return true;
  }
  m_long_line.number = ++m_number;
  m_long_line.cut_after = m_line_bytes - m_long_line.cut_before - m_long_line.text.size();
  if (m_long_line.matches) {
    show_before();
    show(std::exchange(m_long_line, {}));
    ++m_taken;
    m_after = m_order.context;
  } else if (m_after > 0) {
    --m_after;
    show(std::exchange(m_long_line, {}));
  } else {
    remember(std::exchange(m_long_line, {}));
  }
  return !is_full() || m_after > 0;
}

void LineCollector::show_before() {
  for (FoundLine& line : m_before) {
    show(std::move(line));
  }
  m_before.clear();
}

void LineCollector::show(FoundLine line) {
  m_text_bytes += line.text.size() + sizeof(FoundLine);
  m_lines.push_back(std::move(line));
}

void LineCollector::remember(FoundLine line) {
  if (m_order.context == 0) {
    return;
  }
  m_before.push_back(std::move(line));
  if (m_before.size() > m_order.context) {
    m_before.pop_front();
  }
}

/// `line` begins `line_offset` bytes into the whole line.
FoundLine LineCollector::cut(std::string_view line, Span around, std::uint64_t line_offset) const {
  std::size_t begin = 0;
  std::size_t end = line.size();
  if (line.size() > m_order.max_line_bytes) {
    const std::size_t lead = m_order.max_line_bytes / 4;
    begin = std::min(around.begin - std::min(around.begin, lead), line.size() - m_order.max_line_bytes);
    end = character_start(line, begin + m_order.max_line_bytes);
    begin = character_start(line, begin);
    end = std::max(begin, end);
  }
  FoundLine found;
  found.text = line.substr(begin, end - begin);
  found.cut_before = line_offset + begin;
  found.cut_after = line.size() - end;
  return found;
}

}  // namespace dockbridge::agent
