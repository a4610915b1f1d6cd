#pragma once

#include <memory>

#include "mcp/client_state.hpp"

namespace dockbridge::mcp {

class Call;

/// Greetings and settings of a client.
class SessionMethods {
 public:
  explicit SessionMethods(ClientPtr client) : m_client(std::move(client)), m_server(m_client->hub.server) {}

  std::shared_ptr<Call> initialize(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> ping(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> discover(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> set_log_level(Request& request, const Peer& peer, Reply reply);

 private:
  const ClientPtr m_client;
  const Server& m_server;
};

}  // namespace dockbridge::mcp
