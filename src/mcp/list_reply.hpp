#pragma once

#include "error/error.hpp"
#include "mcp/message.hpp"
#include "mcp/reply.hpp"

namespace dockbridge::mcp {

/// Position in a list from which a request asks for entries; null means the start.
inline json requested_cursor(const Request& request) {
  const auto found = request.params.find("cursor");
  return found == request.params.end() ? json(nullptr) : *found;
}

inline void answer_list(Reply& reply, Result<json> result) {
  if (result) {
    reply.result(std::move(*result));
  } else {
    reply.error(k_invalid_params, result.error().message);
  }
}

}  // namespace dockbridge::mcp
