#include "mcp/visibility.hpp"

#include <algorithm>

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_uri_bytes = 16UL * 1024;

}  // namespace

bool Visibility::may_use(const std::string& tool) const {
  return m_caller.may_use(tool) && m_catalogue.find_tool(tool) != nullptr;
}

bool Visibility::may_use_all(const std::vector<std::string>& tools) const {
  return std::all_of(tools.begin(), tools.end(), [&](const std::string& tool) { return may_use(tool); });
}

bool Visibility::may_read(const std::string& uri) const {
  if (m_catalogue.resources() == nullptr || uri.size() > k_max_uri_bytes) {
    return false;
  }
  if (m_catalogue.find_skill(uri) != nullptr) {
    return skill(uri) != nullptr;
  }
  const std::string tool = m_catalogue.resources()->tool_for(uri);
  return tool.empty() || may_use(tool);
}

const Skill* Visibility::skill(const std::string& uri) const {
  const Skill* found = m_catalogue.find_skill(uri);
  return found != nullptr && may_use_all(found->tools) ? found : nullptr;
}

const Prompt* Visibility::prompt(const std::string& name) const {
  const Prompt* found = m_catalogue.find_prompt(name);
  return found != nullptr && may_use_all(found->tools) ? found : nullptr;
}

Visible Visibility::tools() const {
  return is_limited() ? Visible([this](const std::string& tool) { return may_use(tool); }) : Visible();
}

Visible Visibility::uris() const {
  return is_limited() ? Visible([this](const std::string& uri) { return may_read(uri); }) : Visible();
}

Visible Visibility::skills() const {
  return is_limited() ? Visible([this](const std::string& uri) { return skill(uri) != nullptr; }) : Visible();
}

Visible Visibility::prompts() const {
  return is_limited() ? Visible([this](const std::string& name) { return prompt(name) != nullptr; }) : Visible();
}

}  // namespace dockbridge::mcp
