#include "mcp/server.hpp"

#include <algorithm>

namespace dockbridge::mcp {

namespace {

/// The lists of one server do not change while it runs; a client may keep them for a while.
constexpr int k_list_ttl_ms = 300'000;

json tool_entry(const Tool& tool, Revision revision) {
  json entry = {{"name", tool.name}, {"description", tool.description}, {"inputSchema", tool.input_schema}};
  if (revision >= Revision::v2025_03_26) {
    entry["annotations"] = {{"title", tool.title},
                            {"readOnlyHint", tool.annotations.read_only},
                            {"destructiveHint", tool.annotations.destructive},
                            {"idempotentHint", tool.annotations.idempotent},
                            {"openWorldHint", tool.annotations.open_world}};
  }
  if (revision >= Revision::v2025_06_18) {
    entry["title"] = tool.title;
    entry["outputSchema"] = tool.output_schema;
  }
  return entry;
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
  result.text = "Error: " + error.message + (error.next_step.empty() ? "" : "\nNext step: " + error.next_step);
  result.structured = {{"error", {{"code", error.code}, {"message", error.message}, {"nextStep", error.next_step}}}};
  result.is_error = true;
  return result;
}

Server::Server(ServerInfo info, std::vector<Tool> tools) : m_info(std::move(info)), m_tools(std::move(tools)) {}

json Server::implementation(Revision revision) const {
  json info = {{"name", m_info.name}, {"version", m_info.version}};
  if (revision >= Revision::v2025_06_18) {
    info["title"] = m_info.title;
  }
  return info;
}

/// What every result of the stateless revision carries.
json Server::finished(json result, Revision revision) const {
  if (is_stateless(revision)) {
    result["resultType"] = "complete";
    result["_meta"][k_meta_server_info] = implementation(revision);
  }
  return result;
}

json Server::initialize_result(Revision revision) const {
  return {{"protocolVersion", name_of(revision)},
          {"capabilities", {{"tools", json::object()}}},
          {"serverInfo", implementation(revision)},
          {"instructions", m_info.instructions}};
}

json Server::discover_result() const {
  return finished({{"supportedVersions", {name_of(Revision::v2026_07_28)}},
                   {"capabilities", {{"tools", json::object()}}},
                   {"instructions", m_info.instructions},
                   {"ttlMs", k_list_ttl_ms},
                   {"cacheScope", "public"}},
                  Revision::v2026_07_28);
}

json Server::tools_list_result(Revision revision) const {
  json tools = json::array();
  for (const Tool& tool : m_tools) {
    tools.push_back(tool_entry(tool, revision));
  }
  json result = {{"tools", std::move(tools)}};
  if (is_stateless(revision)) {
    result["ttlMs"] = k_list_ttl_ms;
    result["cacheScope"] = "public";
  }
  return finished(std::move(result), revision);
}

json Server::call_result(ToolResult result, Revision revision) const {
  json message = {{"isError", result.is_error}};
  json& text = message["content"].emplace_back(json::object());
  text["type"] = "text";
  text["text"] = std::move(result.text);
  for (json& block : result.more_content) {
    message["content"].push_back(std::move(block));
  }
  if (revision >= Revision::v2025_06_18) {
    message["structuredContent"] = std::move(result.structured);
  }
  return finished(std::move(message), revision);
}

const Tool* Server::find_tool(const std::string& name) const {
  const auto found = std::find_if(m_tools.begin(), m_tools.end(), [&](const Tool& tool) { return tool.name == name; });
  return found == m_tools.end() ? nullptr : &*found;
}

}  // namespace dockbridge::mcp
