#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mcp/tool.hpp"
#include "tools/arguments.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

// Shared parts of all tools: schemas of arguments and results, the rationale, and notes.

/// Largest result, in characters, that an argument (`limit`, `maxResults`) can request.
inline constexpr std::size_t k_max_result_chars = 400'000;

/// An object schema.
mcp::ordered_json object_schema(mcp::ordered_json properties, const std::vector<std::string>& required);
/// The schema of a result: these properties, or an `error`. Nothing is required, because clients validate errors
/// against it too.
mcp::ordered_json result_schema(mcp::ordered_json properties);
/// The schema of a tool's arguments, with the rationale.
mcp::ordered_json arguments_schema(mcp::ordered_json properties, std::vector<std::string> required,
                                   const Settings& settings);
/// Reads the rationale, which every tool takes.
std::string read_rationale(Arguments& arguments, const Settings& settings);
/// `_meta` of a tool, for Claude Code: whether the tool is loaded without a search, and the size of a result above
/// which the client moves it to a file (0: its default). Null if neither is set.
mcp::json client_meta(bool always_load, std::size_t max_result_chars);
/// An object for `ToolResult::facts` with as many of these texts by their names as fit into 500 bytes.
mcp::json as_many_as_fit(const std::vector<std::pair<std::string, std::string>>& texts);
std::string with_notes(std::string text, const std::vector<std::string>& notes);

}  // namespace dockbridge::tools
