#pragma once

#include <string>

#include "agent/session/driver_starts.hpp"
#include "agent/session/memory_guard.hpp"
#include "agent/session/process_numbers.hpp"
#include "agent/session/wait_requests.hpp"

namespace dockbridge::agent {

/// Starts processes. A start with an idempotency key whose process exists becomes a wait for that process.
class ProcessStarter {
 public:
  ProcessStarter(StateDirectory& state, std::string shell, ProcessNumbers& numbers, ProcessTable& processes,
                 DriverStarts& drivers, MemoryGuard& memory, WaitList& waits, WaitRequests& wait_requests);

  Result<void> start(std::uint64_t request, const wire::StartRequest& message);

 private:
  Result<void> choose_program(const wire::Command& command, Assignment& assignment) const;
  /// Waits for the process that exists for the idempotency key of the start.
  Result<void> join(std::uint64_t request, const std::string& id, const wire::StartRequest& message);

  StateDirectory& m_state;
  std::string m_shell;
  ProcessNumbers& m_numbers;
  ProcessTable& m_processes;
  DriverStarts& m_drivers;
  MemoryGuard& m_memory;
  WaitList& m_waits;
  WaitRequests& m_wait_requests;
};

}  // namespace dockbridge::agent
