#include "agent/keeper/command_end.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "agent/keeper/out_of_memory.hpp"
#include "agent/keeper/usage.hpp"

namespace dockbridge::agent {

namespace {

/// A shell adds this to a signal's number for its exit status.
constexpr int k_shell_signal_base = 128;
/// Interval between attempts to record an end after the disk was full.
constexpr milliseconds k_record_interval{1000};

}  // namespace

void CommandEnd::note_memory_kills() {
  m_earlier_memory_kills = out_of_memory_kills();
}

void CommandEnd::set_cause(wire::Cause cause) {
  if (m_status.cause == wire::Cause::none && is_running()) {
    m_status.cause = cause;
  }
}

std::optional<wire::Phase> CommandEnd::reap() {
  bool has_ended = false;
  int status = 0;
  rusage used{};
  pid_t pid = 0;
  while ((pid = ::wait4(-1, &status, WNOHANG, &used)) > 0) {
    m_reaped = sum_of(m_reaped, usage_of(used));
    if (pid == m_command && is_running()) {
      has_ended = true;
      m_status.end = WIFSIGNALED(status) ? wire::EndKind::signal : wire::EndKind::exit;
      m_status.end_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
      m_status.ended = {unix_milliseconds_now(), uptime_milliseconds_now()};
    }
  }
  const bool is_childless = pid < 0 && errno == ECHILD;
  if (!has_ended && !(is_childless && m_phase == wire::Phase::exited)) {
    return std::nullopt;
  }
  return is_childless ? wire::Phase::closed : wire::Phase::exited;
}

void CommandEnd::enter(wire::Phase phase, const std::vector<TakenInput>& taken) {
  m_phase = phase;
  m_status.closed = phase == wire::Phase::closed;
  if (was_killed_for_memory()) {
    m_status.cause = wire::Cause::memory;
  }
  m_status.used = m_reaped;
  m_status.taken = taken;
}

/// The session has reserved disk space for the line, but not for the list of idempotency keys. If the line cannot be
/// written (some file systems cannot reserve space), the keeper stays and retries. While it lives, it reports how the
/// command ended.
void CommandEnd::record(Clock::time_point now) {
  auto recorded = append(m_journal.get(), m_process, m_status);
  if (!recorded && !m_status.taken.empty()) {
    Status without_keys = m_status;
    without_keys.taken.clear();
    recorded = append(m_journal.get(), m_process, without_keys);
  }
  m_is_unrecorded = !recorded;
  m_next_record = now + k_record_interval;
}

/// The kernel reports how often it has killed, but not which process. A shell whose command was killed ends with 137.
bool CommandEnd::was_killed_for_memory() const {
  const bool is_killed = m_status.end == wire::EndKind::signal ? m_status.end_code == SIGKILL
                                                               : m_status.end_code == k_shell_signal_base + SIGKILL;
  return is_killed && m_status.cause == wire::Cause::none && m_earlier_memory_kills &&
         out_of_memory_kills() > *m_earlier_memory_kills;
}

void CommandEnd::describe(StatePacket& state) const {
  state.phase = static_cast<std::uint8_t>(m_phase);
  state.end = static_cast<std::uint8_t>(m_status.end);
  state.cause = static_cast<std::uint8_t>(m_status.cause);
  state.end_code = m_status.end_code;
  state.pid = m_command;
  state.ended_at_ms = m_status.ended.unix_ms;
  state.ended_uptime_ms = m_status.ended.uptime_ms;
  state.used = m_reaped;
}

}  // namespace dockbridge::agent
