#include "tools/tool_shape.hpp"

namespace dockbridge::tools {

using mcp::ordered_json;

ordered_json object_schema(ordered_json properties, const std::vector<std::string>& required) {
  ordered_json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) {
    schema["required"] = required;
  }
  return schema;
}

ordered_json result_schema(ordered_json properties) {
  const ordered_json text = {{"type", "string"}};
  properties["error"] =
      object_schema({{"code", text}, {"message", text}, {"nextStep", text}}, {"code", "message", "nextStep"});
  return object_schema(std::move(properties), {});
}

ordered_json arguments_schema(ordered_json properties, std::vector<std::string> required, const Settings& settings) {
  properties["rationale"] = {{"type", "string"}, {"description", "Why, in one sentence"}};
  if (settings.rationale_required) {
    required.emplace_back("rationale");
  }
  return object_schema(std::move(properties), required);
}

std::string read_rationale(Arguments& arguments, const Settings& settings) {
  return settings.rationale_required ? arguments.required_text("rationale") : arguments.text("rationale").value_or("");
}

mcp::json client_meta(bool always_load, std::size_t max_result_chars) {
  mcp::json meta;
  if (always_load) {
    meta["anthropic/alwaysLoad"] = true;
  }
  if (max_result_chars > 0) {
    meta["anthropic/maxResultSizeChars"] = max_result_chars;
  }
  return meta;
}

mcp::json as_many_as_fit(const std::vector<std::pair<std::string, std::string>>& texts) {
  constexpr std::size_t k_max_bytes = 450;
  auto object = mcp::json::object();
  std::size_t bytes = 0;
  for (const auto& [name, text] : texts) {
    bytes += mcp::dump(name).size() + mcp::dump(text).size() + std::string_view(":,").size();
    if (bytes <= k_max_bytes) {
      object[name] = text;
    }
  }
  return object;
}

std::string with_notes(std::string text, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    text += "\nNote: " + note;
  }
  return text;
}

}  // namespace dockbridge::tools
