#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "mcp/conversation.hpp"
#include "mcp/transport/http/access.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/origins.hpp"
#include "mcp/transport/http/sessions.hpp"
#include "mcp/transport/message_memory.hpp"
#include "util/quota.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::mcp::http {

/// What is told about the program as a whole; may block, within bounds.
struct Health {
  std::function<json()> live;  ///< for /healthz
  /// For /readyz. Without `may_start` it only reports: it does not connect to, start or create the container.
  std::function<Result<json>(bool may_start)> ready;
};

/// MCP over HTTP: decides who gets in, which era a request belongs to, and carries messages between requests, streams
/// of events and conversations. Each request is served by the thread of its connection; calls are made by the pool's.
class Front {
 public:
  Front(Hub& hub, WorkerPool& pool, Limits limits, Access& access, Origins origins, Health health);

  Response handle(Request& request);
  /// Forgets sessions without use.
  void sweep() { m_sessions.sweep(); }
  /// Refuses what comes from now on, tells clients, and gives calls a moment to finish before they are left running in
  /// the container. Whether all have returned by then.
  bool stop(milliseconds finish_patience, milliseconds detach_patience);
  [[nodiscard]] std::size_t sessions() const { return m_sessions.count(); }
  /// The client of a stateless request is gone: that cancels it, unless it is this server that goes.
  void leave_calls(Conversation& conversation);

 private:
  /// One request and what has been found out about it.
  struct Turn {
    Request& request;
    Caller caller;
    std::shared_ptr<Conversation> conversation{};
    std::shared_ptr<Outbox> outbox{};
    std::shared_ptr<Session> session{};              ///< only in the handshake era
    bool envelope_complete = true;                   ///< only for stateless clients
    std::shared_ptr<MessageMemory::Claim> memory{};  ///< memory of its message
  };

  std::optional<Response> refuse_at_the_door(const Request& request);
  Response serve_health(const Request& request);
  Response serve_mcp(Request& request);
  Response post(Turn& turn);
  Response post_stateless(Turn& turn, json message);
  Response post_handshake(Turn& turn, json message);
  Response initialize(Turn& turn, json message);
  Response get(Turn& turn);
  Response remove(Turn& turn);
  /// Hands a message in and answers with what comes back: JSON, a stream of events, or nothing.
  Response exchange(Turn& turn, json message);
  Response await_answer(Turn& turn);
  static Response as_json(const Turn& turn, const json& answer);
  Response events(Turn& turn, std::uint64_t ticket, bool prime);
  void remember(const std::shared_ptr<Conversation>& conversation);
  std::vector<std::shared_ptr<Conversation>> conversations();
  static Response too_many(const char* what);

  Hub& m_hub;
  WorkerPool& m_pool;
  const Limits m_limits;
  Access& m_access;
  const Origins m_origins;
  const Health m_health;
  Sessions m_sessions;
  Quota m_requests;
  Quota m_streams;
  Quota m_calls;
  Quota m_health_requests;
  Rate m_rate;
  MessageMemory m_bodies;
  std::atomic<bool> m_stopping{false};
  std::mutex m_mutex;                                  // guards the list
  std::list<std::weak_ptr<Conversation>> m_stateless;  // those that were not answered at once
};

}  // namespace dockbridge::mcp::http
