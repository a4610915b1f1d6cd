#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "mcp/bulletin.hpp"
#include "mcp/reply.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// Limit for resources that one client watches, and for task ids in one subscription.
inline constexpr std::size_t k_max_watched = 100;

/// Notifications to one client of a handshake revision: changes of lists, of the resources that it has subscribed to,
/// and of its tasks. Any thread may call.
class Subscriptions {
 public:
  Subscriptions(std::string owner, std::shared_ptr<ReplySink> sink)
      : m_owner(std::move(owner)), m_sink(std::move(sink)) {}
  ~Subscriptions() { m_ticket = nullptr; }  // before the rest: a notice may be on its way
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// Sends notifications from now on. A second call changes nothing that the client can observe.
  void start(Bulletin& bulletin);
  /// Subscribes to a resource, for as long as `watch` is held here. False if the client has too many.
  bool add(const std::string& uri, std::shared_ptr<void> watch);
  void remove(const std::string& uri);
  void follow_task(const std::string& id);

 private:
  [[nodiscard]] json message_for(const Notice& notice) const;

  const std::string m_owner;
  const std::shared_ptr<ReplySink> m_sink;
  mutable Mutex m_mutex;
  std::map<std::string, std::shared_ptr<void>> m_watched GUARDED_BY(m_mutex);
  std::set<std::string> m_tasks GUARDED_BY(m_mutex);
  Bulletin::Ticket m_ticket GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp
