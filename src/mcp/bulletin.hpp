#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "mcp/message.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// Something has changed that clients may have asked to be told of.
struct Notice {
  enum class Kind { tools_changed, prompts_changed, resources_changed, resource_updated, task_changed };
  Kind kind;
  std::string subject{};          ///< the resource's URI, or the task's id
  std::string owner{};            ///< whom it is for; empty: everybody
  json task = nullptr;            ///< task_changed: the task, as the stateless revision tells it
  json handshake_task = nullptr;  ///< and as 2025-11-25 does
};

/// Carries notices to those who listen. Any thread may publish, subscribe and leave. Listeners are called one at a time
/// by the thread that publishes; they return quickly and neither subscribe nor leave.
class Bulletin {
 public:
  using Listener = std::function<void(const Notice& notice)>;
  /// Listens while it lives. It may outlive the bulletin.
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
