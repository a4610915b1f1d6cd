#pragma once

#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/arguments.hpp"
#include "tools/output.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

// What the process tools have in common: how a process and its output are told to people and to programs.

/// Output, or STDOUT: and STDERR: blocks where both spoke. Empty if there was none.
std::string output_text(const ShownOutput& output);
/// "Exit code: 0", "Killed by signal 9 (SIGKILL)", and why if dockbridge did it.
std::string end_text(const wire::ProcessState& state);
/// Remarks that do not belong into the output, one a line.
std::vector<std::string> output_notes(const ShownOutput& output);

/// Status, exit code or signal, and what else is known of a process.
mcp::json process_fields(const wire::ProcessState& state);
/// stdout, stderr, their sizes, what was left out, and the cursor.
void add_output_fields(mcp::json& fields, const ShownOutput& output);

/// Schemas of the above, for output schemas.
mcp::ordered_json process_schema();
void add_output_schema(mcp::ordered_json& properties);

/// An object schema.
mcp::ordered_json object_schema(mcp::ordered_json properties, const std::vector<std::string>& required);
/// The schema of a result: these properties, or an `error`. Nothing is required, because clients hold errors to it too.
mcp::ordered_json result_schema(mcp::ordered_json properties);
/// The schema of a tool's arguments, the rationale added.
mcp::ordered_json arguments_schema(mcp::ordered_json properties, std::vector<std::string> required,
                                   const Settings& settings);
/// Adds what a tool that shows output takes: maxOutput and raw.
void add_output_arguments(mcp::ordered_json& properties);
/// Reads them.
OutputRequest read_output_arguments(Arguments& arguments);

/// Reads the rationale, which every tool takes.
std::string read_rationale(Arguments& arguments, const Settings& settings);
/// A note for arguments nobody knows.
std::vector<std::string> unknown_argument_notes(const Arguments& arguments);
std::string with_notes(std::string text, const std::vector<std::string>& notes);

/// `process` as it is now, if it belongs to the owner.
Result<sandbox::Snapshot> find_own(sandbox::Sandbox& sandbox, const std::string& process, const std::string& owner);

}  // namespace dockbridge::tools
