#pragma once

#include <memory>

#include "mcp/client_state.hpp"

namespace dockbridge::mcp {

class Call;

/// Subscriptions to changes: of single resources in the handshake revisions, by listening in the stateless one.
class SubscriptionMethods {
 public:
  explicit SubscriptionMethods(ClientPtr client) : m_client(std::move(client)), m_server(m_client->hub.server) {}

  std::shared_ptr<Call> subscribe(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> unsubscribe(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> listen(Request& request, const Peer& peer, Reply reply);

 private:
  const ClientPtr m_client;
  const Server& m_server;
};

}  // namespace dockbridge::mcp
