#pragma once

#include <cstddef>
#include <span>

#include "mcp/tool.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

/// Schemas of a tool's arguments and result, and its handler. The file of each tool has a namespace with its name, so
/// that all of them can use these names.
struct ToolCode {
  mcp::ordered_json (*input_schema)(const Settings& settings);
  mcp::ordered_json (*output_schema)();
  mcp::ToolResult (*call)(const ToolRequest& call);
};

extern const ToolCode k_execute_command;
extern const ToolCode k_check_process;
extern const ToolCode k_send_input;
extern const ToolCode k_control_process;
extern const ToolCode k_python;
extern const ToolCode k_file_read;
extern const ToolCode k_file_write;
extern const ToolCode k_file_edit;
extern const ToolCode k_file_undo;
extern const ToolCode k_file_ls;
extern const ToolCode k_file_glob;
extern const ToolCode k_file_grep;
extern const ToolCode k_file_upload;
extern const ToolCode k_file_download;

struct ToolRow {
  const char* name;
  const char* title;
  const char* description;
  const ToolCode* code;
  mcp::ToolAnnotations annotations;
  const char* match_guard_description = nullptr;  ///< with `--edit-guard match`; null: as always
  bool always_load = false;                       ///< Claude Code loads the tool without a search
  std::size_t max_result_chars = 0;  ///< largest result that arguments can request; 0: always the usual limit
  mcp::TaskSupport task_support = mcp::TaskSupport::forbidden;
  bool uses_host_directories = false;  ///< only listed with `--allow-host-path`
};

/// Every tool, in the order in which they are listed.
std::span<const ToolRow> tool_table();

}  // namespace dockbridge::tools
