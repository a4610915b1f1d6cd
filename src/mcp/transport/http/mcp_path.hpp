#pragma once

#include <memory>
#include <vector>

#include "mcp/conversation.hpp"
#include "mcp/message_memory.hpp"
#include "mcp/transport/http/access.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/message_exchange.hpp"
#include "mcp/transport/http/sessions.hpp"
#include "util/quota.hpp"

namespace dockbridge::mcp::http {

/// Serves /mcp: authenticates a request, applies the limits of its owner, and finds the conversation that its message
/// belongs to.
class McpPath {
 public:
  McpPath(Hub& hub, CallScheduler& scheduler, const Limits& limits, Access& access, Sessions& sessions);

  Response serve(Request& request);
  /// Ends subscriptions, waits `finish_patience` for calls to finish, and then detaches them. False if calls have not
  /// returned after `detach_patience`.
  bool stop(milliseconds finish_patience, milliseconds detach_patience);
  [[nodiscard]] bool is_stopping() const { return m_exchange.is_stopping(); }

 private:
  Response post(Turn& turn);
  Response post_stateless(Turn& turn, json message);
  Response post_handshake(Turn& turn, json message);
  Response initialize(Turn& turn, json message);
  Response get(Turn& turn);
  Response remove(Turn& turn);
  [[nodiscard]] std::vector<std::shared_ptr<Conversation>> conversations() const;

  Hub& m_hub;
  Access& m_access;
  Sessions& m_sessions;
  CallScheduler& m_scheduler;
  Quota m_requests;
  Rate m_rate;
  MessageMemory m_bodies;
  MessageExchange m_exchange;
};

}  // namespace dockbridge::mcp::http
