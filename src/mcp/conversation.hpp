#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "mcp/client_state.hpp"
#include "mcp/hub.hpp"
#include "mcp/reply.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

class Call;

/// One client's side of the protocol: receives its messages, and answers each request exactly once, in any order. Does
/// not know the transport, which passes messages in with the sink for their answers. The methods themselves are in
/// `methods`. Any thread may call.
class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  using Calls = std::vector<std::shared_ptr<Call>>;

  /// `standing` receives messages that belong to no request.
  static std::shared_ptr<Conversation> begin(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing);
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// Receives a message or batch from the client, as text. Replies to it, except for requests that may take minutes:
  /// they are returned.
  [[nodiscard]] Calls receive(std::string_view text) { return receive(text, m_client.standing); }
  [[nodiscard]] Calls receive(std::string_view text, const std::shared_ptr<ReplySink>& sink);
  [[nodiscard]] Calls receive(json value, const std::shared_ptr<ReplySink>& sink);
  /// Replies with an error to input that the transport itself rejects.
  void refuse(const Malformed& malformed);

  [[nodiscard]] const Caller& caller() const { return m_client.caller; }
  /// The revision that the handshake has agreed on; nullopt before it.
  [[nodiscard]] std::optional<Revision> negotiated() const { return m_client.handshake.negotiated(); }
  /// Interrupts every running call, which then ends the work that it started. The client has gone.
  void cancel_calls() { m_client.calls.interrupt_all(StopReason::cancelled); }
  /// Makes every running call return, and leaves the work that it started running.
  void detach_calls() { m_client.calls.interrupt_all(StopReason::detached); }
  [[nodiscard]] bool has_running_calls() const { return !m_client.calls.is_idle(); }
  /// False if calls still run at the deadline.
  bool wait_for_calls(Deadline deadline) { return m_client.calls.wait_until_idle(deadline); }
  /// Ends the open subscriptions/listen requests with a reply.
  void end_listening() { m_client.listeners.end_all(m_client.hub.server.format); }

 private:
  Conversation(Hub& hub, Caller caller, std::shared_ptr<ReplySink> standing);

  Calls receive_batch(json batch, const std::shared_ptr<ReplySink>& sink);
  // These return the call, if the message asked for one.
  std::shared_ptr<Call> dispatch(Message message, const std::shared_ptr<ReplySink>& sink);
  std::shared_ptr<Call> handle_request(Request request, Reply reply);
  std::shared_ptr<Call> serve(Request& request, const Peer& peer, Reply reply);
  void handle_notification(const Notification& notification);

  ClientState m_client;
};

}  // namespace dockbridge::mcp
