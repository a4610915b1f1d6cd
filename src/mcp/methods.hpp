#pragma once

#include <memory>
#include <string_view>

#include "mcp/client_state.hpp"
#include "mcp/message.hpp"
#include "mcp/reply.hpp"

namespace dockbridge::mcp {

class Call;

/// Serves one request. Answers it, or returns a call that will.
using MethodHandler = std::shared_ptr<Call> (*)(const ClientPtr& client, Request& request, const Peer& peer,
                                                Reply reply);

/// The handler of a method; nullptr if the revision has no such method.
MethodHandler find_method(std::string_view name, Revision revision);

}  // namespace dockbridge::mcp
