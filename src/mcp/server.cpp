#include "mcp/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "util/json_text.hpp"

namespace dockbridge::mcp {

namespace {

/// The lists of one server hardly change while it runs; a client may keep them for a while.
constexpr int k_list_ttl_ms = 300'000;
constexpr std::size_t k_page_size = 100;

/// Only values that differ from the defaults of the specification, because each conversation pays for the whole list.
json annotations_of(const Tool& tool, Revision revision) {
  const ToolAnnotations& known = tool.annotations;
  json annotations = json::object();
  if (revision < Revision::v2025_06_18) {
    annotations["title"] = tool.title;  // later revisions have it beside the name
  }
  if (known.read_only) {
    annotations["readOnlyHint"] = true;
  } else if (!known.destructive) {
    annotations["destructiveHint"] = false;
  }
  if (!known.read_only && known.idempotent) {
    annotations["idempotentHint"] = true;
  }
  if (!known.open_world) {
    annotations["openWorldHint"] = false;
  }
  return annotations;
}

json tool_entry(const Tool& tool, Revision revision, Representation representation) {
  // As text, because a `json` would sort the arguments by name.
  json entry = {{"name", tool.name},
                {"description", tool.description},
                {"inputSchema", with_known_text(tool.input_schema.dump())}};
  if (revision >= Revision::v2025_03_26) {
    if (json annotations = annotations_of(tool, revision); !annotations.empty()) {
      entry["annotations"] = std::move(annotations);
    }
  }
  if (revision >= Revision::v2025_06_18) {
    entry["title"] = tool.title;
    if (!tool.output_schema.is_null() && representation == Representation::structured) {
      entry["outputSchema"] = tool.output_schema;
    }
    if (!tool.meta.is_null()) {
      entry["_meta"] = tool.meta;
    }
  }
  if (revision == Revision::v2025_11_25 && tool.task_support != TaskSupport::forbidden) {
    entry["execution"] = {{"taskSupport", tool.task_support == TaskSupport::required ? "required" : "optional"}};
  }
  return entry;
}

void put_title(json& entry, const std::string& title, Revision revision) {
  if (revision >= Revision::v2025_06_18 && !title.empty()) {
    entry["title"] = title;
  }
}

json prompt_entry(const Prompt& prompt, Revision revision) {
  json entry = {{"name", prompt.name}, {"description", prompt.description}, {"arguments", json::array()}};
  for (const PromptArgument& argument : prompt.arguments) {
    entry["arguments"].push_back(
        {{"name", argument.name}, {"description", argument.description}, {"required", argument.required}});
  }
  put_title(entry, prompt.title, revision);
  return entry;
}

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

Revision negotiate(const json& requested) {
  for (int i = 0; i <= static_cast<int>(k_newest_handshake); ++i) {
    if (requested == k_revision_names.at(static_cast<std::size_t>(i))) {
      return static_cast<Revision>(i);
    }
  }
  return k_newest_handshake;
}

ToolResult error_result(const Error& error) {
  ToolResult result;
  result.text = fmt::format("Error: {}\n{}", error.message, error.step());
  result.structured = {
      {"error", {{"code", name_of(error.code)}, {"message", error.message}, {"nextStep", error.step()}}}};
  result.facts = {{"error", name_of(error.code)}};
  result.is_error = true;
  result.outcome_unknown = error.outcome_unknown;
  return result;
}

Server::Server(ServerInfo info, Offer offer) : m_info(std::move(info)), m_offer(std::move(offer)) {
  const auto names_absent_tool = [this](const auto& text) {
    return std::any_of(text.tools.begin(), text.tools.end(),
                       [this](const std::string& tool) { return find_tool(tool) == nullptr; });
  };
  std::erase_if(m_offer.skills, names_absent_tool);
  std::erase_if(m_offer.prompts, names_absent_tool);
  for (std::size_t i = 0; i < m_tool_lists.size(); ++i) {
    const auto revision = static_cast<Revision>(i);
    for (const Representation representation : {Representation::text, Representation::structured}) {
      ToolList& list = m_tool_lists.at(i).at(static_cast<std::size_t>(representation));
      for (const Tool& tool : m_offer.tools) {
        list.entries.push_back(tool_entry(tool, revision, representation));
      }
      list.text = with_known_text(dump(*tools_list_result(revision, representation)));
    }
  }
}

json Server::implementation(Revision revision, bool whole) const {
  json info = {{"name", m_info.name}, {"version", m_info.version}};
  put_title(info, m_info.title, revision);
  if (whole && revision >= Revision::v2025_11_25 && !m_info.icon.empty()) {
    info["icons"] = json::array({{{"src", m_info.icon}, {"mimeType", "image/svg+xml"}, {"sizes", {"any"}}}});
  }
  return info;
}

json Server::capabilities(Revision revision) const {
  const json list = m_info.announces_lists ? json{{"listChanged", true}} : json::object();
  json all = {{"tools", list}, {"logging", json::object()}};
  if (!m_offer.prompts.empty()) {
    all["prompts"] = list;
  }
  if (m_offer.resources != nullptr) {
    all["resources"] = list;
    all["resources"]["subscribe"] = true;
  }
  if (revision >= Revision::v2025_03_26 && (m_offer.resources != nullptr || !m_offer.prompts.empty())) {
    all["completions"] = json::object();
  }
  const bool tasks = std::any_of(m_offer.tools.begin(), m_offer.tools.end(),
                                 [](const Tool& tool) { return tool.task_support != TaskSupport::forbidden; });
  if (tasks && revision == Revision::v2025_11_25) {
    all["tasks"] = {
        {"list", json::object()}, {"cancel", json::object()}, {"requests", {{"tools", {{"call", json::object()}}}}}};
  }
  if (tasks && is_stateless(revision)) {
    all["extensions"][k_tasks_extension] = json::object();
  }
  if (!m_offer.skills.empty() && m_offer.resources != nullptr && is_stateless(revision)) {
    all["extensions"][k_skills_extension] = json::object();
  }
  return all;
}

json Server::finished(json result, Revision revision, const char* type) const {
  if (is_stateless(revision)) {
    result["resultType"] = type;
    result["_meta"][k_meta_server_info] = implementation(revision, false);
  }
  return result;
}

std::string Server::visible_text(const std::string& text, const Visible& tools) const {
  return tools && m_offer.visible_text ? m_offer.visible_text(text, tools) : text;
}

bool Server::offers_resource(const std::string& uri) const {
  const std::string tool = m_offer.resources->tool_for(uri);
  return tool.empty() || find_tool(tool) != nullptr;
}

json Server::initialize_result(Revision revision, const Visible& tools) const {
  return {{"protocolVersion", name_of(revision)},
          {"capabilities", capabilities(revision)},
          {"serverInfo", implementation(revision, true)},
          {"instructions", visible_text(m_info.instructions, tools)}};
}

json Server::discover_result(const Visible& tools) const {
  constexpr Revision k_revision = Revision::v2026_07_28;
  json result = finished({{"supportedVersions", {name_of(k_revision)}},
                          {"capabilities", capabilities(k_revision)},
                          {"instructions", visible_text(m_info.instructions, tools)},
                          {"ttlMs", k_list_ttl_ms},
                          {"cacheScope", tools ? "private" : "public"}},
                         k_revision);
  result["_meta"][k_meta_server_info] = implementation(k_revision, true);
  return result;
}

Result<json> Server::list(const char* key, json entries, const json& cursor, Revision revision, bool filtered) const {
  std::size_t from = 0;
  if (!cursor.is_null()) {
    const std::string text = cursor.is_string() ? cursor.get<std::string>() : "";
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), from);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || from == 0 ||
        from >= entries.size()) {
      return fail(ErrorCode::bad_cursor, "Unknown cursor");
    }
  }
  json result = json::object();
  const std::size_t to = std::min(entries.size(), from + k_page_size);
  if (to < entries.size()) {
    result["nextCursor"] = std::to_string(to);
  }
  if (from > 0 || to < entries.size()) {
    const auto begin = entries.begin();
    entries = json(json::array_t(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to)));
  }
  result[key] = std::move(entries);
  if (is_stateless(revision)) {
    result["ttlMs"] = k_list_ttl_ms;
    result["cacheScope"] = filtered ? "private" : "public";
  }
  return finished(std::move(result), revision);
}

const Server::ToolList& Server::tool_list(Revision revision, Representation representation) const {
  return m_tool_lists.at(static_cast<std::size_t>(revision)).at(static_cast<std::size_t>(representation));
}

Result<json> Server::tools_list_result(Revision revision, Representation representation, const json& cursor,
                                       const Visible& visible) const {
  const json& all = tool_list(revision, representation).entries;
  if (!visible) {
    return list("tools", all, cursor, revision);
  }
  json entries = json::array();
  for (const json& entry : all) {
    if (visible(entry.at("name").get<std::string>())) {
      json& shown = entries.emplace_back(entry);
      shown["description"] = visible_text(entry.at("description").get<std::string>(), visible);
    }
  }
  return list("tools", std::move(entries), cursor, revision, /*filtered=*/true);
}

const json& Server::tools_list_text(Revision revision, Representation representation) const {
  return tool_list(revision, representation).text;
}

Result<json> Server::prompts_list_result(Revision revision, const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const Prompt& prompt : m_offer.prompts) {
    if (!visible || visible(prompt.name)) {
      entries.push_back(prompt_entry(prompt, revision));
    }
  }
  return list("prompts", std::move(entries), cursor, revision, visible != nullptr);
}

Result<json> Server::resources_list_result(Revision revision, const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const Resource& resource : m_offer.resources->resources()) {
    if (!offers_resource(resource.uri) || (visible && !visible(resource.uri))) {
      continue;
    }
    json entry = {{"uri", resource.uri},
                  {"name", resource.name},
                  {"description", resource.description},
                  {"mimeType", resource.mime_type}};
    put_title(entry, resource.title, revision);
    entries.push_back(std::move(entry));
  }
  for (const Skill& skill : m_offer.skills) {
    if (is_stateless(revision) && (!visible || visible(skill.uri))) {
      entries.push_back(skill_resource(skill));
    }
  }
  return list("resources", std::move(entries), cursor, revision, visible != nullptr);
}

Result<json> Server::skills_list_result(const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const Skill& skill : m_offer.skills) {
    if (!visible || visible(skill.uri)) {
      entries.push_back(skill_entry(skill));
    }
  }
  return list("skills", std::move(entries), cursor, Revision::v2026_07_28, visible != nullptr);
}

json Server::skill_result(const Skill& skill, bool filtered) const {
  return finished(
      {{"skill", skill_entry(skill)}, {"ttlMs", k_list_ttl_ms}, {"cacheScope", filtered ? "private" : "public"}},
      Revision::v2026_07_28);
}

const Skill* Server::find_skill(const std::string& uri) const {
  const auto found =
      std::find_if(m_offer.skills.begin(), m_offer.skills.end(), [&](const Skill& skill) { return skill.uri == uri; });
  return found == m_offer.skills.end() ? nullptr : &*found;
}

Result<json> Server::templates_list_result(Revision revision, const json& cursor, const Visible& visible) const {
  json entries = json::array();
  for (const ResourceTemplate& resource : m_offer.resources->templates()) {
    if (!offers_resource(resource.uri_template) || (visible && !visible(resource.uri_template))) {
      continue;
    }
    json entry = {{"uriTemplate", resource.uri_template},
                  {"name", resource.name},
                  {"description", resource.description},
                  {"mimeType", resource.mime_type}};
    put_title(entry, resource.title, revision);
    entries.push_back(std::move(entry));
  }
  return list("resourceTemplates", std::move(entries), cursor, revision, visible != nullptr);
}

json Server::call_result(ToolResult result, Revision revision, Representation representation) const {
  if (result.input_required) {
    json message = {{"inputRequests", std::move(result.input_required->requests)}};
    if (!result.input_required->state.empty()) {
      message["requestState"] = std::move(result.input_required->state);
    }
    return finished(std::move(message), revision, "input_required");
  }
  json message = {{"isError", result.is_error}};
  for (const std::string& notice : result.notices) {
    result.text += (result.text.empty() ? "Note: " : "\nNote: ") + notice;
  }
  json& content = message["content"] = json::array();
  if (!result.text.empty() || result.more_content.empty()) {
    json& text = content.emplace_back(json::object());
    text["type"] = "text";
    text["text"] = std::move(result.text);
  }
  for (json& block : result.more_content) {
    content.push_back(std::move(block));
  }
  if (representation == Representation::structured && revision >= Revision::v2025_06_18 &&
      !result.structured.is_null()) {
    message["structuredContent"] = std::move(result.structured);
  }
  if (!result.facts.is_null()) {
    message["_meta"][k_meta_result] = std::move(result.facts);
  }
  return finished(std::move(message), revision);
}

json Server::prompt_result(const Prompt& prompt, PromptResult result, Revision revision) const {
  if (result.input_required) {
    ToolResult asking;
    asking.input_required = std::move(result.input_required);
    return call_result(std::move(asking), revision, Representation::text);
  }
  return finished({{"description", prompt.description}, {"messages", std::move(result.messages)}}, revision);
}

json Server::read_result(json contents, Revision revision) const {
  json result = {{"contents", std::move(contents)}};
  if (is_stateless(revision)) {
    result["ttlMs"] = 0;
    result["cacheScope"] = "private";
  }
  return finished(std::move(result), revision);
}

const Tool* Server::find_tool(const std::string& name) const {
  const auto found =
      std::find_if(m_offer.tools.begin(), m_offer.tools.end(), [&](const Tool& tool) { return tool.name == name; });
  return found == m_offer.tools.end() ? nullptr : &*found;
}

const Prompt* Server::find_prompt(const std::string& name) const {
  const auto found = std::find_if(m_offer.prompts.begin(), m_offer.prompts.end(),
                                  [&](const Prompt& prompt) { return prompt.name == name; });
  return found == m_offer.prompts.end() ? nullptr : &*found;
}

std::vector<HeaderParameter> Server::header_parameters(const std::string& tool) const {
  std::vector<HeaderParameter> found;
  if (const Tool* known = find_tool(tool)) {
    std::vector<std::string> path;
    collect_header_parameters(known->input_schema, path, found);
  }
  return found;
}

}  // namespace dockbridge::mcp
