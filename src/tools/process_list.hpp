#pragma once

#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

/// One line about a process: "p3 running 12 s, quiet 3 s: npm run dev" or "p2 exit 1 after 0.4 s: make test".
std::string list_line(const wire::ProcessState& state);

/// All running processes of the caller, and the latest finished ones.
mcp::ToolResult list_processes(const ToolRequest& call);

/// The processes that `processId` and `processIds` of a call name, each once. Rejects more than the agent can wait for.
std::vector<std::string> read_process_ids(Arguments& arguments);

}  // namespace dockbridge::tools
