#include "mcp/subscriptions.hpp"

namespace dockbridge::mcp {

void Subscriptions::start(Bulletin& bulletin) {
  auto ticket = bulletin.subscribe([this](const Notice& notice) {
    if (const json message = message_for(notice); !message.is_null()) {
      m_sink->send(message);
    }
  });
  // The previous ticket is dropped without the lock, which a notice on its way may need.
  const MutexLock lock(m_mutex);
  m_ticket.swap(ticket);
}

bool Subscriptions::add(const std::string& uri, std::shared_ptr<void> watch) {
  // A watch that is replaced ends without the lock: the parameter outlives it.
  const MutexLock lock(m_mutex);
  if (m_watched.size() >= k_max_watched) {
    return false;
  }
  m_watched[uri].swap(watch);
  return true;
}

void Subscriptions::remove(const std::string& uri) {
  std::shared_ptr<void> watch;  // ends without the lock
  const MutexLock lock(m_mutex);
  if (const auto found = m_watched.find(uri); found != m_watched.end()) {
    watch = std::move(found->second);
    m_watched.erase(found);
  }
}

void Subscriptions::follow_task(const std::string& id) {
  const MutexLock lock(m_mutex);
  m_tasks.insert(id);
}

/// Null if the client has not subscribed to this.
json Subscriptions::message_for(const Notice& notice) const {
  const MutexLock lock(m_mutex);
  switch (notice.kind) {
    case Notice::Kind::tools_changed:
      return notification_message("notifications/tools/list_changed", json::object());
    case Notice::Kind::prompts_changed:
      return notification_message("notifications/prompts/list_changed", json::object());
    case Notice::Kind::resources_changed:
      return notification_message("notifications/resources/list_changed", json::object());
    case Notice::Kind::resource_updated:
      return m_watched.contains(notice.subject) && (notice.owner.empty() || notice.owner == m_owner)
                 ? notification_message("notifications/resources/updated", {{"uri", notice.subject}})
                 : json();
    case Notice::Kind::task_changed:
      return m_tasks.contains(notice.subject)
                 ? notification_message("notifications/tasks/status", notice.handshake_task)
                 : json();
  }
  return {};
}

}  // namespace dockbridge::mcp
