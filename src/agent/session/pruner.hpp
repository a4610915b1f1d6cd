#pragma once

#include <cstdint>

#include "agent/moment.hpp"
#include "agent/session/state_directory.hpp"
#include "util/clock.hpp"
#include "wire/retention.hpp"

namespace dockbridge::agent {

/// Enforces the retention limits on the processes in the state directory.
class Pruner {
 public:
  Pruner(const StateDirectory& state, wire::Retention retention) : m_state(state), m_retention(retention) {}

  /// Prunes at regular intervals, after many starts, and when too much output is stored. `starts` is the number of
  /// processes that the session has started.
  void prune_if_due(Clock::time_point now, std::uint64_t starts);
  [[nodiscard]] Clock::time_point next_prune() const { return m_next_prune; }

  /// Removes finished processes, oldest first. If the output of running processes exceeds the limit by itself, their
  /// keepers are asked to store less. Does nothing while another session prunes.
  void prune(const Moment& now) const;

 private:
  const StateDirectory& m_state;
  wire::Retention m_retention;
  Clock::time_point m_next_prune{};  ///< in the past, so the first prune is due
  Clock::time_point m_next_size_check{};
  std::uint64_t m_starts = 0;  ///< number of starts at the last prune
};

}  // namespace dockbridge::agent
