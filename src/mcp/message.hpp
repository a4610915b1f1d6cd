#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace dockbridge::mcp {

using nlohmann::json;
using nlohmann::ordered_json;

enum ErrorCode : int {
  k_parse_error = -32700,
  k_invalid_request = -32600,
  k_method_not_found = -32601,
  k_invalid_params = -32602,
  k_internal_error = -32603,
  k_unsupported_version = -32022,
};

struct Request {
  json id;  ///< a string or a 64-bit integer
  std::string method;
  json params = json::object();
};

struct Notification {
  std::string method;
  json params = json::object();
};

/// What is to be neither done nor answered: an answer (this server asks nothing), or a notification nobody can read.
struct Ignorable {};

/// What could not be taken as a message; answered with the id if there was a usable one.
struct Malformed {
  json id;
  int code = k_invalid_request;
  std::string reason;
};

using Message = std::variant<Request, Notification, Ignorable, Malformed>;

/// Text to JSON, bounded in depth; `Malformed` if it is none.
std::variant<json, Malformed> parse_json(std::string_view text);
/// One JSON-RPC message out of parsed JSON (not a batch).
Message to_message(json value);

json result_message(const json& id, json result);
json error_message(const json& id, int code, const std::string& message, json data = nullptr);

/// JSON text on one line; what is not UTF-8 is replaced.
std::string dump(const json& value);

}  // namespace dockbridge::mcp
