#pragma once

#include <memory>

#include "mcp/client_state.hpp"

namespace dockbridge::mcp {

class Call;

/// The methods that list and read resources.
class ResourceMethods {
 public:
  explicit ResourceMethods(ClientPtr client) : m_client(std::move(client)), m_server(m_client->hub.server) {}

  std::shared_ptr<Call> list(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> list_templates(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> read(Request& request, const Peer& peer, Reply reply);

 private:
  const ClientPtr m_client;
  const Server& m_server;
};

}  // namespace dockbridge::mcp
