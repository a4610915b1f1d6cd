#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/tool_shape.hpp"

namespace dockbridge::tools {

// Texts and fields about a process that several tools report.

/// The id that replies use for a process: "p3", or the long form if it has no number.
std::string process_name(const wire::ProcessState& state);
/// "Exit code: 0", "Killed by signal 9 (SIGKILL)", and the reason if dockbridge ended it.
std::string end_text(const wire::ProcessState& state);
/// One sentence: "p3 is running, no output for 4 s." or "p3 ended. Exit code: 0".
std::string status_sentence(const wire::ProcessState& state);
/// For `ToolResult::facts`.
mcp::json process_facts(const wire::ProcessState& state);
/// Facts of a reply about several processes: the word for each by its name, as many as have room.
mcp::json facts_of_several(const std::vector<std::pair<std::string, std::string>>& words);
/// Status, exit code or signal, and what else is known of a process.
mcp::json process_fields(const wire::ProcessState& state);
/// Its schema.
mcp::ordered_json process_schema();

/// The current state of `process`. Error `no_such_process` if the owner has none of that id.
Result<sandbox::Snapshot> find_own(sandbox::Sandbox& sandbox, const std::string& process, const std::string& owner,
                                   const sandbox::CallLimit& limit);

}  // namespace dockbridge::tools
