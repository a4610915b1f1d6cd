#include "mcp/method_groups.hpp"

#include "mcp/call.hpp"

namespace dockbridge::mcp {

std::shared_ptr<Call> SessionMethods::initialize(Request& request, const Peer& /*peer*/, Reply reply) {
  const auto version = request.params.find("protocolVersion");
  if (version == request.params.end() || !version->is_string()) {
    reply.error(k_invalid_params, "initialize needs 'protocolVersion', a string");
    return nullptr;
  }
  const Revision revision = negotiate(*version);
  std::optional<json> capabilities;
  if (const auto given = request.params.find("capabilities"); given != request.params.end() && given->is_object()) {
    if (!usable_capabilities(*given)) {
      reply.error(k_invalid_params, "'capabilities' is too large");
      return nullptr;
    }
    capabilities = *given;
  }
  std::optional<std::string> client_name;
  if (const auto client = request.params.find("clientInfo"); client != request.params.end()) {
    client_name = name_of_client(*client);
  }
  m_client->subscriptions.start(m_client->hub.bulletin);
  m_client->handshake.agree(revision, std::move(capabilities), std::move(client_name));
  reply.result(m_server.initialize_result(revision, m_client->visibility.tools()));
  return nullptr;
}

std::shared_ptr<Call> SessionMethods::ping(Request& /*request*/, const Peer& /*peer*/, Reply reply) {
  reply.result(json::object());
  return nullptr;
}

std::shared_ptr<Call> SessionMethods::discover(Request& /*request*/, const Peer& /*peer*/, Reply reply) {
  reply.result(m_server.discover_result(m_client->visibility.tools()));
  return nullptr;
}

std::shared_ptr<Call> SessionMethods::set_log_level(Request& request, const Peer& /*peer*/, Reply reply) {
  const auto severity = log_severity(text_param(request.params, "level").value_or(""));
  if (!severity) {
    reply.error(k_invalid_params,
                "'level' must be one of debug, info, notice, warning, error, critical, alert, "
                "emergency");
    return nullptr;
  }
  m_client->handshake.set_log_from(*severity);
  reply.result(json::object());
  return nullptr;
}

}  // namespace dockbridge::mcp
