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

// What a reply shows of a process: its output, lines found in it, or the screen of its terminal.

struct ViewRequest {
  OutputRequest output;
  std::optional<bool> screen;  ///< none: if a program draws on it, so that lines would not show all that is new
  std::string typed{};         ///< on a terminal: its echo is left out
  std::optional<sandbox::GrepRequest> grep{};
};

struct View {
  ShownOutput output;  ///< with a screen, where to read on and nothing else; of a terminal, its lines
  std::optional<sandbox::Screen> screen;
  std::optional<sandbox::GrepResult> found;  ///< `output` then holds the lines
  Cursor before{};                           ///< what lies before this was shown earlier and is not in `output`
  std::optional<Cursor> from;  ///< where `output` begins; nullopt if it holds no output, or only the last lines
};

/// Adds to a tool's arguments what it takes to choose: maxOutput, raw and screen.
void add_view_arguments(mcp::ordered_json& properties);
/// Reads them.
ViewRequest read_view_arguments(Arguments& arguments);

Result<View> look_at(sandbox::Sandbox& sandbox, const sandbox::Snapshot& snapshot, const ViewRequest& request,
                     const sandbox::CallLimit& limit);

/// The screen, or the output of both streams. Empty if there was none.
std::string view_text(const View& view);
/// The text with a line before it that says how the process ended and how to read what was left out. Clients may cut
/// the end of a long reply. Without such a line if nothing was left out.
std::string view_text_with_rest(const ToolCall& call, const wire::ProcessState& state, const View& view);
inline constexpr std::string_view k_may_wait_hint = "It may wait for input; send_input answers it.";
/// Whether the process may wait for input, although that cannot be seen: its output ends in an unfinished line.
bool may_wait_for_input(const wire::ProcessState& state, const View& view);
/// Which bytes were shown earlier, and how to read them again; empty if none were.
std::string shown_before_text(const View& view);
/// When the reply has been delivered, what it shows counts as shown to the client.
void count_as_shown(const ToolCall& call, const wire::ProcessState& state, const View& view, mcp::ToolResult& result);
/// Remarks that do not belong into the output.
std::vector<std::string> view_notes(const View& view);
/// Facts about a process and how to read on, for `ToolResult::facts`.
mcp::json view_facts(const wire::ProcessState& state, const View& view);
/// stdout, stderr, what was left out, the cursor; the screen.
void add_view_fields(mcp::json& fields, const View& view);
/// Their schema.
void add_view_schema(mcp::ordered_json& properties);

}  // namespace dockbridge::tools
