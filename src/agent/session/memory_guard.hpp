#pragma once

#include <optional>
#include <string>

#include "agent/code/memory_policy.hpp"
#include "agent/session/process_table.hpp"
#include "agent/session/state_directory.hpp"
#include "agent/session/warm_interpreters.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

/// Ends warm interpreters and idle code sessions when the container is short of memory. Looks once a second while any
/// of them exists, and once a minute for sessions that others have started.
class MemoryGuard {
 public:
  MemoryGuard(const StateDirectory& state, ProcessTable& processes, WarmInterpreters& warm)
      : m_state(state), m_processes(processes), m_warm(warm) {}

  /// A code session was started.
  void note_session() { m_has_sessions = true; }
  void check_if_due(Clock::time_point now);
  [[nodiscard]] Clock::time_point next_check() const;

 private:
  [[nodiscard]] bool is_needed() const { return m_has_sessions || !m_warm.empty(); }
  /// The session that has waited for a request for the longest time; nullopt if none waits.
  [[nodiscard]] std::optional<std::string> find_longest_idle() const;

  const StateDirectory& m_state;
  ProcessTable& m_processes;
  WarmInterpreters& m_warm;
  MemoryPolicy m_policy;
  bool m_has_sessions = false;
  Clock::time_point m_next_search = Clock::now() + seconds(1);  ///< for sessions
};

}  // namespace dockbridge::agent
