#include "agent/session/output_grep.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "agent/record.hpp"
#include "agent/session/pattern.hpp"
#include "agent/spool.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// Length up to which a line is searched.
constexpr std::size_t k_max_line_bytes = 64 * 1024;
constexpr std::size_t k_max_shown_line_bytes = 500;
constexpr std::size_t k_max_text_bytes = 100 * 1024;
constexpr std::size_t k_grep_piece_bytes = 64 * 1024;
constexpr std::size_t k_reads_per_turn = 16;

}  // namespace

void GrepLines::feed(std::string_view bytes) {
  m_offset += bytes.size();
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    m_line.append(part.substr(0, k_max_line_bytes - std::min(k_max_line_bytes, m_line.size())));
    if (end == std::string_view::npos) {
      return;
    }
    take_line();
    bytes.remove_prefix(end + 1);
  }
}

void GrepLines::skip_to(std::uint64_t offset) {
  finish();
  if (m_text.size() < k_max_text_bytes) {
    m_text += fmt::format("[{} bytes are not stored; line numbers restart at 1]\n", offset - m_offset);
  }
  m_offset = offset;
  m_number = 0;
  m_last_shown = 0;
  m_after = 0;
  m_before.clear();
}

void GrepLines::finish() {
  if (!m_line.empty()) {
    take_line();
  }
}

void GrepLines::take_line() {
  ++m_number;
  std::string line = std::exchange(m_line, {});
  if (line.find_first_of("\x1b\r\b") != std::string::npos) {
    line = plain_terminal_text(line);
  }
  if (re2::RE2::PartialMatch(line, *m_pattern)) {
    ++m_matches;
    if (m_shown < m_most && m_text.size() < k_max_text_bytes) {
      ++m_shown;
      for (std::size_t i = 0; i < m_before.size(); ++i) {
        show(m_number - m_before.size() + i, '-', m_before[i]);
      }
      m_before.clear();
      show(m_number, ':', line);
      m_after = m_context;
      return;
    }
  }
  if (m_after > 0) {
    --m_after;
    show(m_number, '-', line);
  } else if (m_context > 0) {
    m_before.push_back(line.substr(0, k_max_shown_line_bytes + 1));
    if (m_before.size() > m_context) {
      m_before.pop_front();
    }
  }
}

void GrepLines::show(std::uint64_t number, char mark, const std::string& line) {
  if (m_context > 0 && m_last_shown > 0 && number > m_last_shown + 1) {
    m_text += "--\n";
  }
  m_last_shown = number;
  const std::string shown = utf8_prefix(line, k_max_shown_line_bytes);
  m_text += fmt::format("{}{}{}{}\n", number, mark, shown, shown.size() < line.size() ? " …" : "");
}

Result<OutputGrep> OutputGrep::make(const Order& order) {
  auto pattern = compile_pattern(order.pattern, order.ignore_case);
  return pattern ? Result<OutputGrep>(OutputGrep(std::move(*pattern), order)) : fail(pattern.error());
}

OutputGrep::OutputGrep(std::unique_ptr<re2::RE2> pattern, const Order& order)
    : m_pattern(std::move(pattern)),
      m_streams{GrepLines(*m_pattern, order.context, order.most), GrepLines(*m_pattern, order.context, order.most)} {}

OutputGrep::OutputGrep(OutputGrep&&) noexcept = default;
OutputGrep& OutputGrep::operator=(OutputGrep&&) noexcept = default;
OutputGrep::~OutputGrep() = default;

Result<bool> OutputGrep::advance(int directory_fd, const std::string& process) {
  for (std::size_t reads = 0; m_current < m_streams.size(); ++m_current) {
    GrepLines& lines = m_streams.at(m_current);
    const auto spool = SpoolReader::open(directory_fd, m_current == 0 ? out_name(process) : err_name(process));
    if (!spool) {
      return fail(spool.error());
    }
    const auto state = m_end ? Result<wire::StreamState>() : spool->state();
    if (!state) {
      return fail(state.error());
    }
    m_end = m_end.value_or(state->total);
    while (lines.offset() < *m_end) {
      if (reads++ == k_reads_per_turn) {
        return false;
      }
      const auto slice =
          spool->read(lines.offset(), std::min<std::uint64_t>(k_grep_piece_bytes, *m_end - lines.offset()));
      if (!slice) {
        return fail(slice.error());
      }
      const bool skips = slice->offset > lines.offset();
      if (skips) {
        lines.skip_to(slice->offset);
      }
      if (slice->bytes.empty() && !skips) {
        break;  // the output is no longer stored
      }
      lines.feed(slice->bytes);
    }
    lines.finish();
    m_end.reset();
  }
  return true;
}

}  // namespace dockbridge::agent
