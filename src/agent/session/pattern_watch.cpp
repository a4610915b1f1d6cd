#include "agent/session/pattern_watch.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "agent/record.hpp"
#include "agent/session/pattern.hpp"
#include "agent/spool.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// Length up to which a line without an end is matched.
constexpr std::size_t k_max_watched_line = 64 * 1024;
constexpr std::size_t k_watch_piece_bytes = 64 * 1024;
constexpr std::size_t k_bytes_per_turn = 1024 * 1024;
constexpr std::size_t k_max_reported_line_bytes = 1000;

}  // namespace

std::optional<std::string> LineSearch::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    m_line.append(bytes.substr(0, end));
    if (end == std::string_view::npos) {
      break;
    }
    if (auto found = match()) {
      return found;
    }
    m_line_start = offset() + 1;
    m_line.clear();
    bytes.remove_prefix(end + 1);
  }
  auto found = m_line.empty() ? std::nullopt : match();
  if (m_line.size() > k_max_watched_line) {
    skip_to(offset() - k_max_watched_line / 2);
  }
  return found;
}

void LineSearch::skip_to(std::uint64_t to) {
  const std::uint64_t lost = to - std::min(to, m_line_start);
  m_line.erase(0, std::min<std::uint64_t>(lost, m_line.size()));
  m_line_start = to;
}

std::optional<std::string> LineSearch::match() const {
  const std::string shown = plain_terminal_text(m_line);
  return re2::RE2::PartialMatch(shown, *m_pattern) ? std::optional(shown) : std::nullopt;
}

Result<PatternWatch> PatternWatch::make(const std::string& pattern, Positions from) {
  auto compiled = compile_pattern(pattern);
  return compiled ? Result<PatternWatch>(PatternWatch(std::move(*compiled), from)) : fail(compiled.error());
}

PatternWatch::PatternWatch(std::unique_ptr<re2::RE2> pattern, Positions from)
    : m_pattern(std::move(pattern)), m_searches{LineSearch(*m_pattern, from.out), LineSearch(*m_pattern, from.err)} {}

PatternWatch::PatternWatch(PatternWatch&&) noexcept = default;
PatternWatch& PatternWatch::operator=(PatternWatch&&) noexcept = default;
PatternWatch::~PatternWatch() = default;

Result<bool> PatternWatch::advance(int directory_fd, const std::string& process) {
  std::size_t left = k_bytes_per_turn;
  for (const bool is_err : {false, true}) {
    LineSearch& search = m_searches.at(is_err ? 1 : 0);
    const auto spool = SpoolReader::open(directory_fd, is_err ? err_name(process) : out_name(process));
    if (!spool) {
      return fail(spool.error());
    }
    while (!m_match) {
      const auto slice = spool->read(search.offset(), std::min(k_watch_piece_bytes, left));
      if (!slice) {
        return fail(slice.error());
      }
      if (slice->offset > search.offset()) {
        search.skip_to(slice->offset);
      }
      if (slice->bytes.empty()) {
        break;
      }
      if (auto line = search.feed(slice->bytes)) {
        m_match = Match{is_err, utf8_prefix(*line, k_max_reported_line_bytes)};
      }
      left -= std::min(left, slice->bytes.size());
      if (left == 0) {
        return m_match.has_value();
      }
    }
  }
  return true;
}

}  // namespace dockbridge::agent
