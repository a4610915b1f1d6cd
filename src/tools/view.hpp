#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/tool.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/arguments.hpp"
#include "tools/output.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

// The view of a process in a reply: its output, lines found in it, or the screen of its terminal.

struct ViewRequest {
  OutputRequest output;
  std::optional<bool> screen;  ///< nullopt: only if lines would not show all changes
  std::string typed{};         ///< text typed on a terminal: its echo is left out
  std::optional<sandbox::GrepRequest> grep{};
};

struct View {
  ShownOutput output;  ///< of a terminal, its lines; with a screen, only the cursor
  std::optional<sandbox::Screen> screen;
  std::optional<sandbox::GrepResult> found;  ///< `output` then has only their text
  bool is_found_cut = false;                 ///< the text has only the first of these lines
  Cursor before{};                           ///< output before this was shown earlier and is not in `output`
  std::optional<Cursor> from;                ///< start of `output`; nullopt if it is empty or has only the last lines
};

/// Adds the arguments that choose the view to a schema: maxOutput, raw and screen.
void add_view_arguments(mcp::ordered_json& properties);
/// Reads them.
ViewRequest read_view_arguments(Arguments& arguments);

Result<View> look_at(sandbox::Sandbox& sandbox, const sandbox::Snapshot& snapshot, const ViewRequest& request,
                     const sandbox::CallLimit& limit);

/// The screen, or the output of both streams. Empty if there was none.
std::string view_text(const View& view);
/// The text. If bytes were left out, a line before it says how to read them, and with `states_end` how the process
/// ended: clients may cut the end of a long reply.
std::string view_text_with_rest(const ToolRequest& call, const wire::ProcessState& state, const View& view,
                                bool states_end = true);
inline constexpr std::string_view k_may_wait_hint = "It may wait for input; send_input answers it.";
/// Whether the process may wait for input although that is not observable: its output ends in an unfinished line.
bool may_wait_for_input(const wire::ProcessState& state, const View& view);
/// States the bytes that the client was shown earlier, and how to read them, or the gaps in them; empty if there are
/// none.
std::string shown_before_text(const ToolRequest& call, const wire::ProcessState& state, const View& view);
/// Counts the output as shown to the client once the reply is delivered.
void count_as_shown(const ToolRequest& call, const wire::ProcessState& state, const View& view,
                    mcp::ToolResult& result);
/// Remarks that follow the output.
std::vector<std::string> view_notes(const View& view);
/// Facts about a process and how to read on, for `ToolResult::facts`.
mcp::json view_facts(const wire::ProcessState& state, const View& view);
/// Adds stdout, stderr, their gaps and the cursor, or the screen.
void add_view_fields(mcp::json& fields, const View& view);
/// Their schema.
void add_view_schema(mcp::ordered_json& properties);

}  // namespace dockbridge::tools
