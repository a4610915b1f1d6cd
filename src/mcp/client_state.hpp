#pragma once

#include <memory>
#include <string>

#include "mcp/call_registry.hpp"
#include "mcp/client_questions.hpp"
#include "mcp/handshake.hpp"
#include "mcp/hub.hpp"
#include "mcp/listeners.hpp"
#include "mcp/peer.hpp"
#include "mcp/subscriptions.hpp"
#include "mcp/visibility.hpp"

namespace dockbridge::mcp {

/// State of one client, shared by its conversation, its methods and its running calls. Each part has its own lock, so
/// any thread may use it.
struct ClientState {
  /// `standing` receives messages that belong to no request.
  ClientState(Hub& the_hub, Caller the_caller, std::string the_session, std::shared_ptr<ReplySink> the_standing)
      : hub(the_hub),
        caller(std::move(the_caller)),
        session(std::move(the_session)),
        standing(std::move(the_standing)),
        visibility(hub.server.catalogue, caller),
        handshake(hub.server.info.unasked_log),
        subscriptions(caller.owner, standing) {}

  /// Whether an unanswered call or subscription uses this request id.
  [[nodiscard]] bool uses_id(const json& id) const { return calls.has_id(id) || listeners.has_id(id); }

  Hub& hub;
  const Caller caller;
  const std::string session;  ///< id of the client, unique in this server
  const std::shared_ptr<ReplySink> standing;
  const Visibility visibility;
  Handshake handshake;
  CallRegistry calls;
  ClientQuestions questions;
  Subscriptions subscriptions;
  Listeners listeners;
};

/// Keeps the client's conversation alive, so that a server that stops finds the calls of all clients.
using ClientPtr = std::shared_ptr<ClientState>;

}  // namespace dockbridge::mcp
