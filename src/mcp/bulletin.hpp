#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "mcp/message.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// A change that clients may have subscribed to.
struct Notice {
  enum class Kind { tools_changed, prompts_changed, resources_changed, resource_updated, task_changed };
  Kind kind;
  std::string subject{};          ///< the resource's URI, or the task's id
  std::string owner{};            ///< the owner that may see it; empty means all
  json task = nullptr;            ///< task_changed: the task in the form of the stateless revision
  json handshake_task = nullptr;  ///< the task in the form of 2025-11-25
};

/// Delivers notices to listeners. Any thread may publish, subscribe and unsubscribe. The thread that publishes calls
/// the listeners one at a time. They return quickly, and neither subscribe nor unsubscribe.
class Bulletin {
 public:
  using Listener = std::function<void(const Notice& notice)>;
  /// Keeps the subscription until it is destroyed. It may outlive the bulletin.
  using Ticket = std::shared_ptr<void>;

  [[nodiscard]] Ticket subscribe(Listener listener);
  void publish(const Notice& notice);

 private:
  struct Board {
    Mutex mutex;
    std::map<std::uint64_t, Listener> listeners GUARDED_BY(mutex);
    std::uint64_t next GUARDED_BY(mutex) = 0;
  };
  std::shared_ptr<Board> m_board = std::make_shared<Board>();
};

}  // namespace dockbridge::mcp
