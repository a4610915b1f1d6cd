#include "mcp/result_format.hpp"

#include <fmt/format.h>

namespace dockbridge::mcp {

namespace {

/// The lists of one server hardly change while it runs; a client may keep them for a while.
constexpr int k_list_ttl_ms = 300'000;

}  // namespace

void put_title(json& entry, const std::string& title, Revision revision) {
  if (revision >= Revision::v2025_06_18 && !title.empty()) {
    entry["title"] = title;
  }
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

json ResultFormat::implementation(Revision revision, bool whole) const {
  json info = {{"name", m_info.name}, {"version", m_info.version}};
  put_title(info, m_info.title, revision);
  if (whole && revision >= Revision::v2025_11_25 && !m_info.icon.empty()) {
    info["icons"] = json::array({{{"src", m_info.icon}, {"mimeType", "image/svg+xml"}, {"sizes", {"any"}}}});
  }
  return info;
}

json ResultFormat::call_result(ToolResult result, Revision revision, Representation representation) const {
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
    if (revision >= Revision::v2025_06_18 || block["type"] != "resource_link") {
      content.push_back(std::move(block));
    }
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

json ResultFormat::prompt_result(const Prompt& prompt, PromptResult result, Revision revision) const {
  if (result.input_required) {
    ToolResult asking;
    asking.input_required = std::move(result.input_required);
    return call_result(std::move(asking), revision, Representation::text);
  }
  return finished({{"description", prompt.description}, {"messages", std::move(result.messages)}}, revision);
}

json ResultFormat::read_result(json contents, Revision revision) const {
  json result = {{"contents", std::move(contents)}};
  if (is_stateless(revision)) {
    result["ttlMs"] = 0;
    result["cacheScope"] = "private";
  }
  return finished(std::move(result), revision);
}

json ResultFormat::cacheable(json result, Revision revision, bool filtered) const {
  if (is_stateless(revision)) {
    result["ttlMs"] = k_list_ttl_ms;
    result["cacheScope"] = filtered ? "private" : "public";
  }
  return finished(std::move(result), revision);
}

json ResultFormat::finished(json result, Revision revision, const char* type) const {
  if (is_stateless(revision)) {
    result["resultType"] = type;
    result["_meta"][k_meta_server_info] = implementation(revision, false);
  }
  return result;
}

}  // namespace dockbridge::mcp
