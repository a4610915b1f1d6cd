#pragma once

#include "agent/session/process_table.hpp"
#include "wire/output_messages.hpp"

namespace dockbridge::agent {

/// Serves requests for stored output and for the list of processes.
class OutputRequests {
 public:
  OutputRequests(const StateDirectory& state, const ProcessTable& processes, Replies& replies)
      : m_state(state), m_processes(processes), m_replies(replies) {}

  Result<void> read(std::uint64_t request, const wire::ReadRequest& message);
  void list(std::uint64_t request, const wire::ListRequest& message);

 private:
  const StateDirectory& m_state;
  const ProcessTable& m_processes;
  Replies& m_replies;
};

}  // namespace dockbridge::agent
