#pragma once

#include <optional>
#include <string>

#include "mcp/server.hpp"
#include "mcp/transport/http/exchange.hpp"

namespace dockbridge::mcp::http {

/// What is wrong with the headers that repeat parts of a stateless request; none if they say the same.
std::optional<std::string> header_mismatch(const Request& request, const json& message, const Server& server);

}  // namespace dockbridge::mcp::http
