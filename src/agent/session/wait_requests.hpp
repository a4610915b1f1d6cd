#pragma once

#include <string>

#include "agent/session/process_numbers.hpp"
#include "agent/session/wait_list.hpp"

namespace dockbridge::agent {

/// Serves requests that wait for existing processes.
class WaitRequests {
 public:
  WaitRequests(const StateDirectory& state, ProcessNumbers& numbers, ProcessTable& processes, WaitList& waits)
      : m_state(state), m_numbers(numbers), m_processes(processes), m_waits(waits) {}

  Result<void> wait(std::uint64_t request, const wire::WaitRequest& message);
  /// Waits for one process.
  Result<void> wait_for(std::uint64_t request, const std::string& id, const wire::WaitTerms& terms);

 private:
  Result<void> wait_for_any(std::uint64_t request, const wire::WaitRequest& message);
  /// The id of the process that has `number` among the processes of `owner`.
  Result<std::string> numbered_process(const std::string& owner, std::uint64_t number);

  const StateDirectory& m_state;
  ProcessNumbers& m_numbers;
  ProcessTable& m_processes;
  WaitList& m_waits;
};

}  // namespace dockbridge::agent
