#include "mcp/catalogue.hpp"

#include <algorithm>

namespace dockbridge::mcp {

namespace {

void collect_header_parameters(const ordered_json& schema, std::vector<std::string>& path,
                               std::vector<HeaderParameter>& found) {
  const auto properties = schema.is_object() ? schema.find("properties") : schema.end();
  if (!schema.is_object() || properties == schema.end()) {
    return;
  }
  for (const auto& [name, property] : properties->items()) {
    path.push_back(name);
    if (property.is_object() && property.contains("x-mcp-header")) {
      found.push_back({"Mcp-Param-" + property["x-mcp-header"].get<std::string>(), path});
    }
    collect_header_parameters(property, path, found);
    path.pop_back();
  }
}

}  // namespace

Catalogue::Catalogue(Offer offer) : m_offer(std::move(offer)) {
  const auto names_absent_tool = [this](const auto& text) {
    return std::any_of(text.tools.begin(), text.tools.end(),
                       [this](const std::string& tool) { return find_tool(tool) == nullptr; });
  };
  std::erase_if(m_offer.skills, names_absent_tool);
  std::erase_if(m_offer.prompts, names_absent_tool);
}

const Tool* Catalogue::find_tool(const std::string& name) const {
  const auto found =
      std::find_if(m_offer.tools.begin(), m_offer.tools.end(), [&](const Tool& tool) { return tool.name == name; });
  return found == m_offer.tools.end() ? nullptr : &*found;
}

const Prompt* Catalogue::find_prompt(const std::string& name) const {
  const auto found = std::find_if(m_offer.prompts.begin(), m_offer.prompts.end(),
                                  [&](const Prompt& prompt) { return prompt.name == name; });
  return found == m_offer.prompts.end() ? nullptr : &*found;
}

const Skill* Catalogue::find_skill(const std::string& uri) const {
  const auto found =
      std::find_if(m_offer.skills.begin(), m_offer.skills.end(), [&](const Skill& skill) { return skill.uri == uri; });
  return found == m_offer.skills.end() ? nullptr : &*found;
}

bool Catalogue::offers_resource(const std::string& uri) const {
  const std::string tool = m_offer.resources->tool_for(uri);
  return tool.empty() || find_tool(tool) != nullptr;
}

std::vector<HeaderParameter> Catalogue::header_parameters(const std::string& tool) const {
  std::vector<HeaderParameter> found;
  if (const Tool* known = find_tool(tool)) {
    std::vector<std::string> path;
    collect_header_parameters(known->input_schema, path, found);
  }
  return found;
}

std::string Catalogue::visible_text(const std::string& text, const Visible& tools) const {
  return tools && m_offer.visible_text ? m_offer.visible_text(text, tools) : text;
}

}  // namespace dockbridge::mcp
