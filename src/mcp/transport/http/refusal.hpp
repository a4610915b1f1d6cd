#pragma once

#include <string>

#include "mcp/message.hpp"
#include "mcp/transport/http/exchange.hpp"

namespace dockbridge::mcp::http {

/// A JSON-RPC error with this HTTP status.
Response error_response(int status, int code, const std::string& message, const json& id = nullptr,
                        json data = nullptr);
/// The same for a request that is not admitted, which is counted by its status.
Response refused(int status, const std::string& message, const json& id = nullptr);
/// A 429 for an owner at a limit, counted as `what`.
Response too_many(const char* what);

}  // namespace dockbridge::mcp::http
