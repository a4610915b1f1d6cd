#include "mcp/call_registry.hpp"

namespace dockbridge::mcp {

void CallRegistry::add(const json& id, std::shared_ptr<Interruption> call) {
  const MutexLock lock(m_mutex);
  m_unanswered.emplace(id, call);
  m_running.insert(std::move(call));
}

void CallRegistry::release_id(const json& id) {
  const MutexLock lock(m_mutex);
  m_unanswered.erase(id);
}

void CallRegistry::remove(const std::shared_ptr<Interruption>& call) {
  const MutexLock lock(m_mutex);
  m_running.erase(call);
  m_ended.notify_all();
}

bool CallRegistry::has_id(const json& id) const {
  const MutexLock lock(m_mutex);
  return m_unanswered.contains(id);
}

bool CallRegistry::is_idle() const {
  const MutexLock lock(m_mutex);
  return m_running.empty();
}

void CallRegistry::interrupt(const json& id, StopReason reason) {
  const MutexLock lock(m_mutex);
  if (const auto call = m_unanswered.find(id); call != m_unanswered.end()) {
    call->second->interrupt(reason);
  }
}

void CallRegistry::interrupt_all(StopReason reason) {
  const MutexLock lock(m_mutex);
  for (const auto& call : m_running) {
    call->interrupt(reason);
  }
}

bool CallRegistry::wait_until_idle(Deadline deadline) {
  MutexLock lock(m_mutex);
  return m_ended.wait_until(lock, deadline.time(), [&]() REQUIRES(m_mutex) { return m_running.empty(); });
}

}  // namespace dockbridge::mcp
