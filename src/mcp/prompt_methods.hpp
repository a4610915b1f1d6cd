#pragma once

#include <memory>

#include "mcp/client_state.hpp"

namespace dockbridge::mcp {

class Call;

/// The methods of prompts, and completion of the arguments of prompts and resource templates.
class PromptMethods {
 public:
  explicit PromptMethods(ClientPtr client) : m_client(std::move(client)), m_server(m_client->hub.server) {}

  std::shared_ptr<Call> list(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> get(Request& request, const Peer& peer, Reply reply);
  std::shared_ptr<Call> complete(Request& request, const Peer& peer, Reply reply);

 private:
  const ClientPtr m_client;
  const Server& m_server;
};

}  // namespace dockbridge::mcp
