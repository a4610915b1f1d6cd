#include "mcp/listeners.hpp"

namespace dockbridge::mcp {

Listeners::~Listeners() {
  for (auto& [id, listener] : m_open) {
    drop(listener);
  }
}

void Listeners::drop(Listener& listener) {
  listener.ticket = nullptr;
  listener.reply.silence();
}

bool Listeners::has_id(const json& id) const {
  const MutexLock lock(m_mutex);
  return m_open.contains(id);
}

bool Listeners::is_full() const {
  const MutexLock lock(m_mutex);
  return m_open.size() >= k_max_listeners;
}

void Listeners::add(const json& id, Listener listener) {
  const MutexLock lock(m_mutex);
  m_open.try_emplace(id, std::move(listener));
}

void Listeners::cancel(const json& id) {
  Open::node_type cancelled;
  {
    const MutexLock lock(m_mutex);
    cancelled = m_open.extract(id);
  }
  if (!cancelled.empty()) {
    drop(cancelled.mapped());
  }
}

void Listeners::end_all(const ResultFormat& format) {
  Open ended;
  {
    const MutexLock lock(m_mutex);
    ended.swap(m_open);
  }
  for (auto& [id, listener] : ended) {
    listener.ticket = nullptr;
    json result = format.finished(json::object(), Revision::v2026_07_28);
    result["_meta"][k_meta_subscription] = id;
    listener.reply.result(std::move(result));
  }
}

}  // namespace dockbridge::mcp
