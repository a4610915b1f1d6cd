#pragma once

#include "agent/session/process_table.hpp"
#include "wire/input_messages.hpp"

namespace dockbridge::agent {

/// Serves requests that send something to a process. Where its keeper has to report what was accepted, the reply is
/// sent after that report.
class InputRequests {
 public:
  InputRequests(const StateDirectory& state, ProcessTable& processes, Replies& replies)
      : m_state(state), m_processes(processes), m_replies(replies) {}

  Result<void> input(std::uint64_t request, const wire::InputRequest& message);
  Result<void> keys(std::uint64_t request, const wire::KeysRequest& message);
  Result<void> side(std::uint64_t request, const wire::SideRequest& message);
  Result<void> signal(std::uint64_t request, const wire::SignalRequest& message);
  Result<void> taken(std::uint64_t request, const wire::TakenRequest& message);
  Result<void> resize(std::uint64_t request, const wire::ResizeRequest& message);
  Result<void> end(std::uint64_t request, const wire::EndRequest& message);

 private:
  /// Signals what is left of a process whose keeper was killed. If nothing is left, the error is `not_found`.
  Result<void> signal_survivors_of(std::uint64_t request, const std::string& process, int signal,
                                   const Error& not_found);

  const StateDirectory& m_state;
  ProcessTable& m_processes;
  Replies& m_replies;
};

}  // namespace dockbridge::agent
