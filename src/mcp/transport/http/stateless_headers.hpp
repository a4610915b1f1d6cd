#pragma once

#include <optional>
#include <string>

#include "mcp/catalogue.hpp"
#include "mcp/transport/http/exchange.hpp"

namespace dockbridge::mcp::http {

/// Describes a header that contradicts the stateless request whose parts it repeats. nullopt if all agree.
std::optional<std::string> header_mismatch(const Request& request, const json& message, const Catalogue& catalogue);

}  // namespace dockbridge::mcp::http
