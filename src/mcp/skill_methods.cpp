// What a conversation does for the methods of the skills extension.

#include <fmt/format.h>

#include <algorithm>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"
#include "util/text.hpp"

namespace dockbridge::mcp {

const Skill* Conversation::visible_skill(const std::string& uri) const {
  const Skill* skill = m_server.find_skill(uri);
  const bool is_visible = skill != nullptr && std::all_of(skill->tools.begin(), skill->tools.end(),
                                                          [&](const auto& tool) { return may_use(tool); });
  return is_visible ? skill : nullptr;
}

std::shared_ptr<Call> Conversation::list_skills(Request& request, const Peer& /*peer*/, Reply reply) {
  const auto visible = [this](const std::string& uri) { return visible_skill(uri) != nullptr; };
  const auto cursor = request.params.find("cursor");
  auto result = m_server.skills_list_result(cursor == request.params.end() ? json(nullptr) : *cursor,
                                            m_caller.tools ? Visible(visible) : Visible());
  if (result) {
    reply.result(std::move(*result));
  } else {
    reply.error(k_invalid_params, result.error().message);
  }
  return nullptr;
}

std::shared_ptr<Call> Conversation::get_skill(Request& request, const Peer& /*peer*/, Reply reply) {
  const std::string uri = text_param(request.params, "uri").value_or("");
  if (const Skill* skill = visible_skill(uri)) {
    reply.result(m_server.skill_result(*skill, m_caller.tools.has_value()));
  } else {
    reply.error(k_invalid_params, fmt::format("Skill not found: {}", printable_line(uri, 200)), {{"uri", uri}});
  }
  return nullptr;
}

}  // namespace dockbridge::mcp
