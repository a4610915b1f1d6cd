#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/tool_shape.hpp"

namespace dockbridge::tools {

// Texts and fields about a process that several tools report.

/// Unix time as text for programs: "2026-11-19T20:00:00.000Z".
std::string iso_time(std::int64_t unix_ms);
/// The id that replies use for a process: "p3", or the long form if it has no number.
std::string process_name(const wire::ProcessState& state);
/// "Exit code: 0", "Killed by signal 9 (SIGKILL)", and with `states_cause` the reason if dockbridge ended it.
std::string end_text(const wire::ProcessState& state, bool states_cause = true);
/// One sentence: "p3 is running, no output for 4 s." or "p3 ended. Exit code: 0".
std::string status_sentence(const wire::ProcessState& state);
/// For `ToolResult::facts`.
mcp::json process_facts(const wire::ProcessState& state);
/// Facts of a reply about several processes: the status word of each by its name, as many as fit.
mcp::json status_facts(const std::vector<std::pair<std::string, std::string>>& words);
/// Status, exit code or signal, and all other properties of a process.
mcp::json process_fields(const wire::ProcessState& state);
/// Its schema.
mcp::ordered_json process_schema();

}  // namespace dockbridge::tools
