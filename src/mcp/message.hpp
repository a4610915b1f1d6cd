#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace dockbridge::mcp {

using nlohmann::json;
using nlohmann::ordered_json;

/// Error codes of JSON-RPC and MCP.
enum RpcErrorCode : int {
  k_parse_error = -32700,
  k_invalid_request = -32600,
  k_method_not_found = -32601,
  k_invalid_params = -32602,
  k_internal_error = -32603,
  k_handshake_resource_not_found = -32002,
  k_header_mismatch = -32020,
  k_missing_capability = -32021,
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

/// The client's answer to a request from this server: the whole message, with `result` or `error`.
struct Answer {
  json id;
  json message;
};

/// A malformed notification. JSON-RPC forbids replying.
struct Ignorable {};

/// Input that is not a valid message. The error reply has the id if it is usable.
struct Malformed {
  enum class Kind {
    malformed,
    too_large,  ///< parsing it needs too much memory
    no_room,    ///< other messages use the memory at present
  };
  json id;
  int code = k_invalid_request;
  std::string reason;
  Kind kind = Kind::malformed;
};

using Message = std::variant<Request, Notification, Answer, Ignorable, Malformed>;

/// Parses JSON with limits on depth and memory. In addition to the length of the text, its values may take 16 MiB.
/// `claim` is called before more memory is used; returning false ends the parse.
std::variant<json, Malformed> parse_json(std::string_view text,
                                         const std::function<bool(std::size_t bytes)>& claim = {});
/// One JSON-RPC message out of parsed JSON (not a batch).
Message to_message(json value);

json result_message(const json& id, json result);
json error_message(const json& id, int code, const std::string& message, json data = nullptr);
json request_message(const json& id, const std::string& method, json params);
json notification_message(const std::string& method, json params);

/// JSON text on one line. Invalid UTF-8 is replaced.
std::string dump(const json& value);

}  // namespace dockbridge::mcp
