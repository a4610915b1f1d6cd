#include "mcp/transport/http/stateless_headers.hpp"

#include <fmt/format.h>

#include "util/encoding.hpp"

namespace dockbridge::mcp::http {

namespace {

/// The decoded value of a header, which is plain or =?base64?…?=. nullopt if the encoding is malformed.
std::optional<std::string> decoded(const std::string& value) {
  constexpr std::string_view k_prefix = "=?base64?";
  constexpr std::string_view k_suffix = "?=";
  if (!value.starts_with(k_prefix) || !value.ends_with(k_suffix) || value.size() < k_prefix.size() + k_suffix.size()) {
    return value;
  }
  return from_base64(std::string_view(value).substr(k_prefix.size(), value.size() - k_prefix.size() - k_suffix.size()));
}

std::string field(const json& params, const char* name) {
  const auto found = params.find(name);
  return found != params.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The required value of Mcp-Name; nullopt if the method has no name.
std::optional<std::string> name_of(const std::string& method, const json& params) {
  if (method == "tools/call" || method == "prompts/get") {
    return field(params, "name");
  }
  if (method == "resources/read") {
    return field(params, "uri");
  }
  if (method == "tasks/get" || method == "tasks/update" || method == "tasks/cancel") {
    return field(params, "taskId");
  }
  return std::nullopt;
}

std::optional<std::string> compare(const Request& request, const std::string& header, const std::string& expected) {
  const auto given = request.header(header);
  if (!given) {
    return fmt::format("Header {} is required exactly once", header);
  }
  if (decoded(*given) != expected) {
    return fmt::format("Header {} does not match the body", header);
  }
  return std::nullopt;
}

const json* at_path(const json& arguments, const std::vector<std::string>& path) {
  const json* value = &arguments;
  for (const std::string& step : path) {
    const auto next = value->is_object() ? value->find(step) : value->end();
    if (!value->is_object() || next == value->end()) {
      return nullptr;
    }
    value = &*next;
  }
  return value->is_null() ? nullptr : value;
}

}  // namespace

std::optional<std::string> header_mismatch(const Request& request, const json& message, const Catalogue& catalogue) {
  const std::string method = field(message, "method");
  const auto given = message.find("params");
  const json params = given != message.end() && given->is_object() ? *given : json::object();
  if (auto wrong = compare(request, "Mcp-Method", method)) {
    return wrong;
  }
  if (const auto name = name_of(method, params)) {
    if (auto wrong = compare(request, "Mcp-Name", *name)) {
      return wrong;
    }
  }
  if (method == "tools/call") {
    const auto arguments = params.find("arguments");
    for (const HeaderParameter& parameter : catalogue.header_parameters(field(params, "name"))) {
      const json* value = arguments == params.end() ? nullptr : at_path(*arguments, parameter.path);
      if (value == nullptr && request.count(parameter.header) > 0) {
        return fmt::format("Header {} repeats an argument that the body does not have", parameter.header);
      }
      if (value != nullptr) {
        const std::string text = value->is_string() ? value->get<std::string>() : dump(*value);
        if (auto wrong = compare(request, parameter.header, text)) {
          return wrong;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace dockbridge::mcp::http
