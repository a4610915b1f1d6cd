#pragma once

#include <cstdint>
#include <functional>
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

/// The result of a cell that has ended and was not delivered, for a tool that shows its process.
struct SessionNews {
  bool is_busy = false;
  std::uint64_t cell = 0;  ///< the running one or the last one; 0: none
  std::string first_line;  ///< of the running cell
  std::string result;      ///< value and error; empty if there are none
  bool has_result = false;
  std::vector<mcp::json> blocks;
  std::function<void()> on_delivered;  ///< to be called when the client has the result
};
/// Reads the events of a code session. Nothing is shown as delivered yet. nullopt if the process is no code session, or
/// its events cannot be read.
std::optional<SessionNews> session_news(const ToolRequest& call, const wire::ProcessState& state,
                                        const sandbox::CallLimit& limit, std::size_t max_bytes);
/// Adds its result to a reply.
void add_news(SessionNews news, mcp::ToolResult& result);

/// One line about the session of a running process: "session main: 5 cells, idle for 12 s". Reads its events. Empty if
/// the process is no code session.
std::string session_line(const ToolRequest& call, const wire::ProcessState& state, const sandbox::CallLimit& limit);

mcp::ordered_json cell_schema();

}  // namespace dockbridge::tools
