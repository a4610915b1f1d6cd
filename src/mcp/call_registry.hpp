#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <set>

#include "mcp/interruption.hpp"
#include "mcp/message.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// The running calls of one client. A call occupies its request id until it is answered, and counts as running until it
/// has returned. Does not own the calls and sends no replies. Any thread may call.
class CallRegistry {
 public:
  void add(const json& id, std::shared_ptr<Interruption> call);
  /// Another request may use the id. The call still runs.
  void release_id(const json& id);
  void remove(const std::shared_ptr<Interruption>& call);

  [[nodiscard]] bool has_id(const json& id) const;
  [[nodiscard]] bool is_idle() const;
  /// Does nothing if no unanswered call has this id.
  void interrupt(const json& id, StopReason reason);
  void interrupt_all(StopReason reason);
  /// False if calls still run at the deadline.
  bool wait_until_idle(Deadline deadline);

 private:
  mutable Mutex m_mutex;
  std::map<json, std::shared_ptr<Interruption>> m_unanswered GUARDED_BY(m_mutex);  // by request id
  std::set<std::shared_ptr<Interruption>> m_running GUARDED_BY(m_mutex);
  std::condition_variable m_ended;
};

}  // namespace dockbridge::mcp
