#include "mcp/method_groups.hpp"

#include <fmt/format.h>

#include "mcp/call.hpp"
#include "mcp/list_reply.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

std::shared_ptr<Call> ResourceMethods::list(Request& request, const Peer& peer, Reply reply) {
  if (m_server.catalogue.resources() == nullptr) {
    reply.error(k_method_not_found, "This server has no resources");
    return nullptr;
  }
  answer_list(reply, m_server.lists.resources(peer.revision, requested_cursor(request), m_client->visibility.uris()));
  return nullptr;
}

std::shared_ptr<Call> ResourceMethods::list_templates(Request& request, const Peer& peer, Reply reply) {
  if (m_server.catalogue.resources() == nullptr) {
    reply.error(k_method_not_found, "This server has no resources");
    return nullptr;
  }
  answer_list(reply, m_server.lists.templates(peer.revision, requested_cursor(request), m_client->visibility.uris()));
  return nullptr;
}

std::shared_ptr<Call> ResourceMethods::read(Request& request, const Peer& peer, Reply reply) {
  const auto uri = text_param(request.params, "uri");
  if (m_server.catalogue.resources() == nullptr || !uri) {
    reply.error(uri ? k_method_not_found : k_invalid_params,
                uri ? "This server has no resources" : "resources/read needs 'uri', a string");
    return nullptr;
  }
  if (const Skill* skill = is_stateless(peer.revision) ? m_client->visibility.skill(*uri) : nullptr) {
    reply.result(m_server.format.read_result(skill_contents(*skill), peer.revision));
    return nullptr;
  }
  return std::make_shared<PlainCall>(
      m_client, std::move(request), peer, std::move(reply),
      [client = m_client.get(), &server = m_server, uri = *uri,
       revision = peer.revision](const CallContext& context) -> tl::expected<json, ProtocolError> {
        auto contents =
            client->visibility.may_read(uri)
                ? server.catalogue.resources()->read(uri, context)
                : fail(ErrorCode::resource_not_found, fmt::format("Resource not found: {}", printable_line(uri, 200)));
        if (contents) {
          return server.format.read_result(std::move(*contents), revision);
        }
        const bool unknown = contents.error().code == ErrorCode::resource_not_found;
        const int not_found = is_stateless(revision) ? k_invalid_params : k_handshake_resource_not_found;
        const std::string step = server.catalogue.visible_text(
            std::string(contents.error().step()),
            [client](const std::string& tool) { return client->visibility.may_use(tool); });
        return tl::unexpected<ProtocolError>({unknown ? not_found : static_cast<int>(k_internal_error),
                                              contents.error().message + (step.empty() ? "" : ". " + step),
                                              {{"uri", uri}}});
      });
}

}  // namespace dockbridge::mcp
