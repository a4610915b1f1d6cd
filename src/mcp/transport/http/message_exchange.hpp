#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <vector>

#include "mcp/call_scheduler.hpp"
#include "mcp/conversation.hpp"
#include "mcp/message_memory.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/outbox.hpp"
#include "mcp/transport/http/sessions.hpp"
#include "util/mutex.hpp"
#include "util/quota.hpp"

namespace dockbridge::mcp::http {

/// One admitted request and its conversation.
struct Turn {
  Request& request;
  Caller caller;
  std::shared_ptr<Conversation> conversation{};
  std::shared_ptr<Outbox> outbox{};
  std::shared_ptr<Session> session{};              ///< only in the handshake revisions
  bool envelope_complete = true;                   ///< only for stateless clients
  std::shared_ptr<MessageMemory::Claim> memory{};  ///< memory of its message
};

/// Passes a message to its conversation, has its calls scheduled, and turns the answer into a response: JSON, an
/// event stream, or an empty body. Does not check access. Any thread may call.
class MessageExchange {
 public:
  MessageExchange(CallScheduler& scheduler, const Limits& limits)
      : m_scheduler(scheduler),
        m_keep_alive(limits.keep_alive),
        m_streams(limits.streams_per_owner),
        m_calls_per_owner(limits.calls_per_owner) {}

  Response run(Turn& turn, json message);
  /// The response that sends the events of the turn's outbox. `prime`: begin with an event that the client can resume
  /// after.
  Response events(Turn& turn, std::uint64_t ticket, bool prime);
  /// The client of a stateless request has closed the connection. This cancels its calls, unless the server is
  /// stopping.
  void leave_calls(Conversation& conversation);

  void begin_stop() { m_stopping = true; }
  [[nodiscard]] bool is_stopping() const { return m_stopping; }
  /// Conversations of stateless requests that were not answered at once.
  [[nodiscard]] std::vector<std::shared_ptr<Conversation>> stateless_conversations() const;

 private:
  Response await_answer(Turn& turn);
  static Response as_json(const Turn& turn, const json& answer);
  void remember(const std::shared_ptr<Conversation>& conversation);

  CallScheduler& m_scheduler;
  const milliseconds m_keep_alive;
  Quota m_streams;
  const std::size_t m_calls_per_owner;
  std::atomic<bool> m_stopping{false};
  mutable Mutex m_mutex;
  std::list<std::weak_ptr<Conversation>> m_stateless GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp::http
