#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mcp/conversation.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/outbox.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp::http {

/// One client of a handshake revision, across its requests. Any thread may call.
class Session {
 public:
  Session(std::string id, Hub& hub, Caller caller, Clock::time_point now);

  [[nodiscard]] const std::string& id() const { return m_id; }
  [[nodiscard]] const std::shared_ptr<Conversation>& conversation() const { return m_conversation; }
  /// The stream that a GET opens, for messages that belong to no request.
  [[nodiscard]] const std::shared_ptr<Outbox>& standing() const { return m_standing; }
  /// Creates the stream for one request. It is kept until it was delivered, so that a client can resume it.
  std::shared_ptr<Outbox> new_stream();
  /// Finds the stream of an event id, and the number of the event. nullopt if the stream is no longer kept.
  std::optional<std::pair<std::shared_ptr<Outbox>, std::uint64_t>> find_event(const std::string& event_id);

  void touch(Clock::time_point now) { m_last_used = now; }
  [[nodiscard]] Clock::duration idle(Clock::time_point now) const { return now - m_last_used.load(); }
  /// Whether a connection or a call uses the session.
  [[nodiscard]] bool busy() const;
  std::atomic<int> connections{0};

 private:
  const std::string m_id;
  const std::shared_ptr<Outbox> m_standing = std::make_shared<Outbox>("s");
  const std::shared_ptr<Conversation> m_conversation;
  std::atomic<Clock::time_point> m_last_used;
  Mutex m_mutex;
  std::uint64_t m_next_stream GUARDED_BY(m_mutex) = 1;
  std::map<std::string, std::shared_ptr<Outbox>> m_streams GUARDED_BY(m_mutex);
};

/// The sessions of all clients. Each owner has its own limit, so no owner can use up another's sessions. The number of
/// owners is the number of tokens. Idle sessions expire. An owner cannot see sessions of other owners.
class Sessions {
 public:
  Sessions(Hub& hub, const Limits& limits) : m_hub(hub), m_limits(limits) {}

  /// nullptr if the owner is at its limit and all its sessions are in use.
  std::shared_ptr<Session> create(Caller caller, Clock::time_point now);
  std::shared_ptr<Session> find(const std::string& id, const std::string& owner, Clock::time_point now);
  /// Ends the session. The work of its calls continues in the container.
  void remove(const std::string& id);
  /// Ends sessions that were idle for too long.
  void sweep(Clock::time_point now);
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::vector<std::shared_ptr<Session>> all() const;

 private:
  void end(const std::shared_ptr<Session>& session);

  Hub& m_hub;
  const Limits& m_limits;
  mutable Mutex m_mutex;
  std::map<std::string, std::shared_ptr<Session>> m_sessions GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp::http
