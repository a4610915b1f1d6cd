#include "mcp/message.hpp"

#include <fmt/format.h>

#include "util/json_parse.hpp"
#include "util/json_text.hpp"

namespace dockbridge::mcp {

namespace {

constexpr int k_max_depth = 64;
/// Memory limit for the values of a message, in addition to the length of its text. Enough for 40,000 edits in one
/// call.
constexpr std::size_t k_max_value_bytes = 16UL * 1024 * 1024;

/// Ids are copied and outlive their messages, so they must be short.
constexpr std::size_t k_max_id_bytes = 1000;

bool usable_id(const json& id) {
  return (id.is_string() && id.get_ref<const std::string&>().size() <= k_max_id_bytes) || id.is_number_integer();
}

}  // namespace

std::variant<json, Malformed> parse_json(std::string_view text, const std::function<bool(std::size_t bytes)>& claim) {
  ParsedJson parsed = parse_json_text(text, k_max_depth, {text.size() + k_max_value_bytes, claim});
  switch (parsed.problem) {
    case ParsedJson::Problem::none:
      break;
    case ParsedJson::Problem::not_json:
      return Malformed{nullptr, k_parse_error, "Message is not valid JSON"};
    case ParsedJson::Problem::too_deep:
      return Malformed{nullptr, k_invalid_request, fmt::format("JSON is nested deeper than {} levels", k_max_depth)};
    case ParsedJson::Problem::too_large:
      return Malformed{nullptr, k_invalid_request, "Message too large: it holds too many values. Send several messages",
                       Malformed::Kind::too_large};
    case ParsedJson::Problem::no_room:
      return Malformed{nullptr, k_invalid_request, "Too many large messages at once. Send them one after another",
                       Malformed::Kind::no_room};
  }
  return std::move(parsed.value);
}

Message to_message(json value) {
  if (!value.is_object()) {
    return Malformed{nullptr, k_invalid_request, "Message is not a JSON object"};
  }
  const auto id = value.find("id");
  const bool has_id = id != value.end();
  const json known_id = has_id && usable_id(*id) ? *id : json(nullptr);
  const auto malformed = [&](std::string reason) { return Malformed{known_id, k_invalid_request, std::move(reason)}; };

  if (const auto version = value.find("jsonrpc"); version == value.end() || *version != "2.0") {
    return malformed("'jsonrpc' has to be \"2.0\"");
  }
  const auto method = value.find("method");
  if (method == value.end() && has_id && (value.contains("result") || value.contains("error"))) {
    return Answer{known_id, std::move(value)};
  }
  if (method == value.end() || !method->is_string()) {
    return malformed("'method' has to be a string");
  }
  if (has_id && !usable_id(*id)) {
    return malformed(
        fmt::format("'id' has to be a string of at most {} bytes or an integer of at most 64 bits", k_max_id_bytes));
  }
  json params = json::object();
  if (const auto given = value.find("params"); given != value.end() && !given->is_null()) {
    if (!given->is_object() && !has_id) {
      return Ignorable{};  // a notification is never answered, not even a bad one
    }
    if (!given->is_object()) {
      return Malformed{known_id, k_invalid_params, "'params' must be an object"};
    }
    params = std::move(*given);
  }
  if (has_id) {
    return Request{known_id, method->get<std::string>(), std::move(params)};
  }
  return Notification{method->get<std::string>(), std::move(params)};
}

json result_message(const json& id, json result) {
  json message = {{"jsonrpc", "2.0"}, {"id", id}};
  message["result"] = std::move(result);
  return message;
}

json error_message(const json& id, int code, const std::string& message, json data) {
  json error = {{"code", code}, {"message", message}};
  if (!data.is_null()) {
    error["data"] = std::move(data);
  }
  json whole = {{"jsonrpc", "2.0"}, {"error", std::move(error)}};
  if (!id.is_null()) {
    whole["id"] = id;  // MCP's schemas omit it where JSON-RPC has null, and clients reject null
  }
  return whole;
}

json request_message(const json& id, const std::string& method, json params) {
  json message = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}};
  message["params"] = std::move(params);
  return message;
}

json notification_message(const std::string& method, json params) {
  json message = {{"jsonrpc", "2.0"}, {"method", method}};
  message["params"] = std::move(params);
  return message;
}

std::string dump(const json& value) {
  return json_text(value);
}

}  // namespace dockbridge::mcp
