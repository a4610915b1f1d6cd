#pragma once

#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/tool_shape.hpp"

namespace dockbridge::tools {

// What the process tools have in common: how a process is told to people and to programs.

/// "Exit code: 0", "Killed by signal 9 (SIGKILL)", and why if dockbridge did it.
std::string end_text(const wire::ProcessState& state);
/// "Process Status: RUNNING", COMPLETED or LOST.
std::string status_line(const wire::ProcessState& state);
/// How it ended, or what it does.
std::string status_text(const wire::ProcessState& state);
/// Status, exit code or signal, and what else is known of a process.
mcp::json process_fields(const wire::ProcessState& state);
/// Its schema.
mcp::ordered_json process_schema();

/// `process` as it is now, if it belongs to the owner.
Result<sandbox::Snapshot> find_own(sandbox::Sandbox& sandbox, const std::string& process, const std::string& owner,
                                   const sandbox::CallLimit& limit);

}  // namespace dockbridge::tools
