#include "mcp/method_groups.hpp"

#include <fmt/format.h>

#include "mcp/call.hpp"
#include "mcp/list_reply.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

std::shared_ptr<Call> SkillMethods::list(Request& request, const Peer& /*peer*/, Reply reply) {
  answer_list(reply, m_server.lists.skills(requested_cursor(request), m_client->visibility.skills()));
  return nullptr;
}

std::shared_ptr<Call> SkillMethods::get(Request& request, const Peer& /*peer*/, Reply reply) {
  const std::string uri = text_param(request.params, "uri").value_or("");
  if (const Skill* skill = m_client->visibility.skill(uri)) {
    reply.result(m_server.format.cacheable({{"skill", skill_entry(*skill)}}, Revision::v2026_07_28,
                                           m_client->visibility.is_limited()));
  } else {
    reply.error(k_invalid_params, fmt::format("Skill not found: {}", printable_line(uri, 200)), {{"uri", uri}});
  }
  return nullptr;
}

}  // namespace dockbridge::mcp
