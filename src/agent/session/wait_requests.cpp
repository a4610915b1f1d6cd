#include "agent/session/wait_requests.hpp"

#include <fmt/format.h>

namespace dockbridge::agent {

Result<void> WaitRequests::wait(std::uint64_t request, const wire::WaitRequest& message) {
  if (!message.processes.empty()) {
    return wait_for_any(request, message);
  }
  const auto id = message.number ? numbered_process(*message.owner, *message.number) : message.process;
  auto waits = id ? wait_for(request, *id, message.wait) : fail(id.error());
  if (!waits && waits.error().code == ErrorCode::process_expired && id && message.owner &&
      !m_numbers.has(*message.owner, *id)) {
    return fail(no_such_process(*id));  // the process of another owner
  }
  return waits;
}

Result<void> WaitRequests::wait_for(std::uint64_t request, const std::string& id, const wire::WaitTerms& terms) {
  const auto now = Clock::now();
  auto wait = Wait::make(terms, now);
  const auto process = wait ? m_processes.find(id) : fail(wait.error());
  if (!process) {
    return fail(process.error());
  }
  if (wait->port()) {
    wait->shorten_port_delay(age((*process)->record.meta.started, agent::now()));
  }
  m_waits.add(request, std::move(*wait), **process, now);
  return {};
}

Result<void> WaitRequests::wait_for_any(std::uint64_t request, const wire::WaitRequest& message) {
  for (const std::string& id : message.processes) {
    if (auto waits = wait_for(request, id, message.wait); !waits) {
      m_waits.cancel(request);
      return waits;
    }
    if (!m_waits.has(request)) {
      break;  // this process has ended, and the reply was sent
    }
  }
  return {};
}

Result<std::string> WaitRequests::numbered_process(const std::string& owner, std::uint64_t number) {
  for (std::string& id : m_numbers.candidates(owner, number)) {
    const Process* known = m_processes.known(id);
    const auto record = known != nullptr ? Result<Record>(known->record) : m_state.read(id);
    if (record && record->meta.owner == owner && record->meta.number == number) {
      return std::move(id);
    }
  }
  if (number > 0 && number <= m_numbers.highest(owner)) {
    return fail(ErrorCode::process_expired, fmt::format("Process expired: p{}", number));
  }
  return fail(no_such_process(fmt::format("p{}", number)));
}

}  // namespace dockbridge::agent
