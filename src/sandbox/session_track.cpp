#include "sandbox/session_track.hpp"

#include <algorithm>
#include <cstring>

#include "wire/side_channel.hpp"

namespace dockbridge::sandbox {

namespace {

constexpr std::size_t k_max_displays = 64;
constexpr std::size_t k_max_display_bytes = 4UL * 1024 * 1024;
constexpr std::size_t k_max_keys = 64;
constexpr std::size_t k_max_answers = 4;
constexpr std::string_view k_event_start = "{\"event\":";
constexpr std::string_view k_answer_start = "{\"request\":";

std::size_t size_of(const MimeBundle& bundle) {
  std::size_t bytes = 0;
  for (const MimePart& part : bundle) {
    bytes += part.type.size() + part.text.size();
  }
  return bytes;
}

/// Removes what precedes the next header of a piece. JSON text has no NUL bytes, but the size in a header has, so the
/// text of an event is never taken for a header. False if there is no header.
bool skip_to_header(std::string_view& stream) {
  constexpr std::string_view k_magic = "side";
  while (true) {
    const std::size_t at = stream.find(k_magic);
    if (at == std::string_view::npos) {
      stream.remove_prefix(stream.size() - std::min(stream.size(), k_magic.size() - 1));
      return false;
    }
    stream.remove_prefix(at);
    if (stream.size() < sizeof(wire::SidePieceHeader)) {
      return false;
    }
    std::string_view piece = stream;
    if (wire::take_side_piece(piece)) {
      return true;
    }
    stream.remove_prefix(1);
  }
}

template <typename Queue, typename Value>
void push_bounded(Queue& queue, Value value, std::size_t max) {
  queue.push_back(std::move(value));
  if (queue.size() > max) {
    queue.pop_front();
  }
}

}  // namespace

void SessionTrack::add(std::uint64_t offset, std::string_view bytes) {
  if (offset < m_next) {
    bytes.remove_prefix(std::min<std::uint64_t>(bytes.size(), m_next - offset));
    offset = m_next;
  }
  if (bytes.empty()) {
    return;
  }
  if (offset > m_next) {
    m_pieces.clear();
    m_line.clear();
    m_is_lost = m_skips_line = m_has_gap = true;
  }
  m_pieces += bytes;
  m_next = offset + bytes.size();
  take_pieces();
}

void SessionTrack::take_pieces() {
  std::string_view rest = m_pieces;
  while (!m_is_lost || skip_to_header(rest)) {
    const bool was_lost = m_is_lost;
    const auto piece = wire::take_side_piece(rest);
    if (!piece) {
      m_line.clear();
      m_is_lost = m_skips_line = m_has_gap = true;
      continue;
    }
    if (piece->bytes.empty()) {
      break;
    }
    if (was_lost) {
      m_is_lost = false;
      m_skips_line = !piece->bytes.starts_with(k_event_start);
    }
    m_output = {std::max(m_output.first, piece->out), std::max(m_output.second, piece->err)};
    take_text(piece->bytes);
  }
  m_pieces.erase(0, m_pieces.size() - rest.size());
}

void SessionTrack::take_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    if (!m_skips_line) {
      m_line += text.substr(0, newline);
    }
    if (m_line.size() > (m_line.starts_with(k_answer_start) ? k_max_answer_bytes : k_max_event_bytes)) {
      m_line.clear();
      m_skips_line = true;
    }
    if (newline == std::string_view::npos) {
      return;
    }
    if (!m_skips_line) {
      take_line(m_line);
    }
    m_line.clear();
    m_skips_line = false;
    text.remove_prefix(newline + 1);
  }
}

void SessionTrack::take_line(std::string_view line) {
  if (auto event = parse_session_event(line)) {
    event->output_before = m_output;
    take_event(std::move(*event));
  }
}

void SessionTrack::take_event(SessionEvent event) {
  switch (event.kind) {
    case SessionEventKind::ready:
      m_ready = std::move(event);
      break;
    case SessionEventKind::too_old:
      m_too_old = std::move(event);
      break;
    case SessionEventKind::begin:
      begin_cell(event);
      break;
    case SessionEventKind::display:
      add_display(event);
      break;
    case SessionEventKind::end:
      if (!m_cell || m_cell->number != event.cell) {  // its begin is missing
        m_cell = CellRecord{event.cell, "", "", m_output_end};
        m_has_seen_begin = false;
      }
      m_output_end = event.output_before;
      m_cell->end = std::move(event);
      if (m_on_cell_end) {
        m_on_cell_end(*m_cell);
      }
      break;
    case SessionEventKind::stale:
      push_bounded(m_stale_keys, std::move(event.key), k_max_keys);
      break;
    case SessionEventKind::idle:
      m_has_reached_idle_limit = true;
      break;
    case SessionEventKind::history:
    case SessionEventKind::variables:
    case SessionEventKind::pong:
      push_bounded(m_answers, std::move(event), k_max_answers);
      break;
    case SessionEventKind::bad_request:
      ++m_bad_requests;
      m_bad_request = std::move(event.message);
      break;
  }
}

void SessionTrack::begin_cell(SessionEvent& event) {
  // If the end of the cell before is missing, its output is not counted as that of this cell.
  const bool follows = event.cell == last_cell() + 1 && !is_busy();
  push_bounded(m_keys, std::pair(event.key, event.cell), k_max_keys);
  m_cell = CellRecord{event.cell, std::move(event.key), std::move(event.first_line),
                      follows ? m_output_end : event.output_before};
  m_cell->is_limited = event.is_limited;
  m_display_bytes = 0;
  m_has_seen_begin = true;
}

void SessionTrack::add_display(SessionEvent& event) {
  if (!m_cell || m_cell->end) {
    return;  // shown by a thread between two cells
  }
  const std::size_t bytes = size_of(event.bundle);
  if (m_cell->displays.size() == k_max_displays || m_display_bytes + bytes > k_max_display_bytes) {
    ++m_cell->displays_left_out;
    return;
  }
  m_display_bytes += bytes;
  m_cell->displays.push_back(std::move(event));
}

CellProgress SessionTrack::progress_of(std::uint64_t cell, const std::string& key) const {
  if (m_cell && m_cell->number == cell && m_cell->key == key) {
    return m_cell->end ? CellProgress::ended : CellProgress::running;
  }
  const bool is_stale = std::find(m_stale_keys.begin(), m_stale_keys.end(), key) != m_stale_keys.end();
  const std::uint64_t known = cell_with_key(key);
  if (known == cell) {
    return CellProgress::earlier;
  }
  return is_stale || last_cell() >= cell ? CellProgress::refused : CellProgress::unseen;
}

std::uint64_t SessionTrack::cell_with_key(const std::string& key) const {
  const auto found =
      std::find_if(m_keys.rbegin(), m_keys.rend(), [&](const auto& entry) { return entry.first == key; });
  return key.empty() || found == m_keys.rend() ? 0 : found->second;
}

std::optional<SessionEvent> SessionTrack::take_answer(std::uint64_t request) {
  const auto found = std::find_if(m_answers.begin(), m_answers.end(),
                                  [&](const SessionEvent& answer) { return answer.request == request; });
  if (found == m_answers.end()) {
    return std::nullopt;
  }
  SessionEvent answer = std::move(*found);
  m_answers.erase(found);
  return answer;
}

}  // namespace dockbridge::sandbox
