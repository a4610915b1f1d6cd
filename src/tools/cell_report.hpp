#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/code_sessions.hpp"
#include "tools/toolbox.hpp"
#include "tools/view.hpp"

namespace dockbridge::tools {

// Replies about a cell of a Python session. The tool python makes them, and tools that show its process.

/// Reason why a reply is about this cell now.
enum class CellStage : std::uint8_t {
  ended,
  died,             ///< the process ended in the cell
  waits_for_input,  ///< it runs
  quiet,            ///< it runs without output
  waited_enough,    ///< it runs, and the time of the call is over
};

struct CellReport {
  sandbox::SessionHandle session;
  sandbox::Snapshot snapshot;
  sandbox::CellRecord cell;  ///< its number is 0 if the process ended before the code began
  CellStage stage = CellStage::ended;
  std::string name{};  ///< of the session; empty: the process ends with the cell
  bool is_new = false;
  std::optional<sandbox::EndedSession> predecessor{};
  std::optional<sandbox::CellRecord> owed{};  ///< an earlier cell whose result was not delivered
  bool was_shown = false;                     ///< the result was delivered before, so show all of it again
  milliseconds waited{0};
};

/// The whole reply.
mcp::ToolResult report_cell(const ToolRequest& call, const CellReport& report, const ViewRequest& view,
                            std::vector<std::string> notes);

/// How and why a session ended, without a final full stop: "ended in cell 5: Killed by signal 11 (SIGSEGV)".
std::string session_end_text(const sandbox::EndedSession& ended);

/// Status, value and error of a cell without its output: for replies that show the output in their own way. Empty if
/// there is nothing to say.
std::string cell_result_text(const ToolRequest& call, const sandbox::CellRecord& cell, const std::string& process,
                             std::size_t max_bytes, std::vector<mcp::json>& blocks);

/// One line about the session of a running process: "Session main: idle for 12 s, 5 cells". Reads its events. Empty if
/// the process is no code session.
std::string session_line(const ToolRequest& call, const wire::ProcessState& state, const sandbox::CallLimit& limit);

mcp::ordered_json cell_schema();

}  // namespace dockbridge::tools
