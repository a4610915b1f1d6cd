#include "agent/session/memory_guard.hpp"

#include <algorithm>
#include <limits>

#include "agent/code/side_events.hpp"
#include "agent/record.hpp"
#include "agent/spool.hpp"

namespace dockbridge::agent {

namespace {

constexpr seconds k_search_interval{60};
constexpr std::uint32_t k_end_grace_ms = 2000;
/// Longer than the longest event.
constexpr std::size_t k_max_stream_end = 1024 * 1024;

/// The end of the stream `side`; "" if it cannot be read.
std::string end_of_side(const SpoolReader& spool, const wire::StreamState& state) {
  const std::uint64_t first = state.head_end < state.tail_start ? state.tail_start : 0;
  const std::uint64_t longest = std::min<std::uint64_t>(state.total - first, k_max_stream_end);
  std::string bytes;
  for (std::uint64_t at = state.total - longest; at < state.total;) {
    const auto slice = spool.read(at, state.total - at);
    if (!slice || slice->offset != at || slice->bytes.empty()) {
      return "";
    }
    bytes += slice->bytes;
    at += slice->bytes.size();
  }
  return bytes;
}

/// Uptime of the last event of a driver that waits for a request; nullopt if it does not wait, or that is unknown.
std::optional<std::int64_t> idle_since(int directory_fd, const std::string& process) {
  const auto spool = SpoolReader::open(directory_fd, side_name(process));
  const auto changed = spool ? spool->changed_at() : fail(spool.error());
  const auto state = changed ? spool->state() : fail(changed.error());
  return state && is_driver_idle(end_of_side(*spool, *state)) ? std::optional(*changed) : std::nullopt;
}

bool is_live_session(const StateDirectory& state, const Result<Record>& record) {
  return record && record->meta.session && !record->status && record->kept &&
         KeeperLink::is_listening(state.fd(), record->kept->keeper);
}

}  // namespace

Clock::time_point MemoryGuard::next_check() const {
  return is_needed() ? std::min(m_policy.next_check(), m_next_search) : m_next_search;
}

void MemoryGuard::check_if_due(Clock::time_point now) {
  if (now >= m_next_search) {
    m_next_search = now + k_search_interval;
    m_has_sessions = false;
    m_state.visit([&](const std::string&, const Result<Record>& record) {
      m_has_sessions = m_has_sessions || is_live_session(m_state, record);
    });
  }
  if (!is_needed() || now < m_policy.next_check()) {
    return;
  }
  const auto use = read_memory_use();
  switch (m_policy.check(use.value_or(MemoryUse{0, 1}), !m_warm.empty(), now)) {
    case Relief::none:
      return;
    case Relief::warm_interpreters:
      m_warm.drop_all(now);
      return;
    case Relief::idle_session:
      if (const auto id = find_longest_idle()) {
        if (const auto process = m_processes.find_live(*id)) {
          (void)(*process)->link->end_tree(wire::Cause::memory, k_end_grace_ms);
        }
      }
      return;
  }
}

std::optional<std::string> MemoryGuard::find_longest_idle() const {
  std::optional<std::string> longest;
  std::int64_t since = std::numeric_limits<std::int64_t>::max();
  m_state.visit([&](const std::string& id, const Result<Record>& record) {
    // A process without a name ends by itself.
    const bool may_be_idle = is_live_session(m_state, record) && !record->meta.session->name.empty();
    const auto idle = may_be_idle ? idle_since(m_state.fd(), id) : std::nullopt;
    if (idle && *idle < since) {
      since = *idle;
      longest = id;
    }
  });
  return longest;
}

}  // namespace dockbridge::agent
