#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sandbox/patience.hpp"
#include "tools/process_report.hpp"
#include "tools/toolbox.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::CallContext;
using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::Sandbox;
using sandbox::Snapshot;

constexpr double k_longest_timeout_seconds = 3600;
constexpr milliseconds k_progress_interval{2000};
constexpr std::size_t k_shown_in_list = 50;

constexpr const char* k_description =
    "See how a process in the container is doing: status, exit code or signal, and output. Without processId it lists "
    "all processes, newest first. timeout waits up to so many seconds for the process to end, so that you need not "
    "poll. since takes the cursor of an earlier reply and returns only what is new; tail returns the last lines. "
    "Finished processes stay readable for about an hour.\n"
    "Example: {\"processId\": \"proc_123_abc\", \"timeout\": 60, \"rationale\": \"wait for the build\"}";

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {
      {"processId", {{"type", "string"}, {"description", "From execute_command. Leave it out to list all processes."}}},
      {"timeout",
       {{"type", "number"},
        {"minimum", 0},
        {"maximum", k_longest_timeout_seconds},
        {"description", "Seconds to wait for the process to end (default 0: report at once)."}}},
      {"since", {{"type", "string"}, {"description", "The cursor of an earlier reply: only output after it."}}},
      {"tail", {{"type", "integer"}, {"minimum", 1}, {"description", "Only the last so many lines of output."}}}};
  add_output_arguments(properties);
  return arguments_schema(std::move(properties), {}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_output_schema(properties);
  properties["processes"] = {{"type", "array"}, {"items", object_schema(process_schema(), {})}};
  properties["leftOut"] = {{"type", "integer"}, {"description", "processes that are not in the list"}};
  return result_schema(std::move(properties));
}

std::string one_line(const wire::ProcessState& state) {
  const std::string status = state.running() ? fmt::format("RUNNING, quiet for {} s", state.idle_ms / 1000)
                                             : fmt::format("COMPLETED, {}", end_text(state));
  return fmt::format("{}  {}  {}", state.id, status, printable_line(state.command, 80));
}

ToolResult list(Sandbox& sandbox, const std::string& owner, const std::vector<std::string>& notes) {
  auto found = sandbox.list();
  if (!found) {
    return mcp::error_result(found.error());
  }
  std::erase_if(found->processes, [&](const auto& state) { return state.owner != owner; });
  const std::size_t shown = std::min(found->processes.size(), k_shown_in_list);
  const std::uint64_t left_out = found->processes.size() - shown + found->left_out;
  ToolResult result;
  result.structured = {{"processes", mcp::json::array()}, {"leftOut", left_out}};
  std::string text = found->processes.empty() ? "No processes." : "";
  for (std::size_t i = 0; i < shown; ++i) {
    result.structured["processes"].push_back(process_fields(found->processes[i]));
    text += fmt::format("{}{}", i == 0 ? "" : "\n", one_line(found->processes[i]));
  }
  if (left_out > 0) {
    text += fmt::format("\n[{} older processes are not listed]", left_out);
  }
  result.text = with_notes(std::move(text), notes);
  return result;
}

/// Waits for the end, in slices if the client wants to see progress.
Result<Snapshot> wait_for_end(Sandbox& sandbox, Snapshot snapshot, milliseconds timeout, const CallContext& context) {
  const auto began = Clock::now();
  const sandbox::Patience patience{milliseconds::max(), timeout};
  while (snapshot.state.running()) {
    const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    const auto step = judge(patience, waited, milliseconds{0});
    if (step.verdict != sandbox::Verdict::keep_waiting) {
      break;
    }
    const auto next = context.report_progress ? std::min(step.next, k_progress_interval) : step.next;
    auto later = sandbox.wait(snapshot.state.id, next, std::nullopt, context.interruption.token());
    if (!later && later.error().code == "cancelled") {
      break;  // who waited is gone; the process was not theirs to end
    }
    if (!later) {
      return fail(later.error());
    }
    snapshot = std::move(*later);
    if (context.report_progress && snapshot.state.running()) {
      context.report_progress(fmt::format("waiting for {} s", (waited + next).count() / 1000));
    }
  }
  return snapshot;
}

ToolResult tell(const wire::ProcessState& state, const ShownOutput& output, std::vector<std::string> notes) {
  for (std::string& note : output_notes(output)) {
    notes.push_back(std::move(note));
  }
  std::string text = fmt::format("Process Status: {}\nProcess ID: {}\nCommand: {}\n",
                                 state.running()                    ? "RUNNING"
                                 : state.phase == wire::Phase::lost ? "LOST"
                                                                    : "COMPLETED",
                                 state.id, printable_line(state.command, 200));
  if (state.running()) {
    text += fmt::format("No output for: {:.1f} s\n", static_cast<double>(state.idle_ms) / 1000);
  } else {
    text += end_text(state) + "\n";
  }
  if (state.phase == wire::Phase::exited) {
    notes.emplace_back("something the command started still runs");
  }
  const std::string shown = output_text(output);
  text += fmt::format("Cursor: {}\n\n{}", output.cursor().text(), shown.empty() ? "(no output)" : shown);
  ToolResult result;
  result.text = with_notes(std::move(text), notes);
  result.structured = process_fields(state);
  add_output_fields(result.structured, output);
  return result;
}

ToolResult call(const SandboxResolver& resolve, const Settings& settings, const mcp::json& values,
                const CallContext& context) {
  Arguments arguments(values);
  read_rationale(arguments, settings);
  const auto process = arguments.text("processId");
  auto timeout = arguments.duration("timeout", 0, k_longest_timeout_seconds).value_or(milliseconds{0});
  OutputRequest request = read_output_arguments(arguments);
  if (const auto lines = arguments.integer("tail", 1, std::numeric_limits<std::int32_t>::max())) {
    request.tail_lines = static_cast<std::size_t>(*lines);
  }
  if (const auto since = arguments.text("since")) {
    request.since = Cursor::parse(*since);
    if (!request.since) {
      arguments.reject("since", "is not a cursor; it looks like \"123:0\" and comes from an earlier reply");
    }
  }
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  Sandbox& sandbox = resolve(context);
  std::vector<std::string> notes = unknown_argument_notes(arguments);
  if (!process) {
    return list(sandbox, context.owner, notes);
  }
  const auto longest =
      context.report_progress ? settings.max_wait : std::min(settings.max_wait, settings.client_timeout);
  if (timeout > longest) {
    timeout = longest;
    notes.push_back(fmt::format("waited at most {} s", longest.count() / 1000));
  }
  auto snapshot = find_own(sandbox, *process, context.owner);
  if (snapshot) {
    snapshot = wait_for_end(sandbox, std::move(*snapshot), timeout, context);
  }
  if (!snapshot) {
    return mcp::error_result(snapshot.error());
  }
  const auto output = collect_output(sandbox, *snapshot, request);
  return output ? tell(snapshot->state, *output, std::move(notes)) : mcp::error_result(output.error());
}

}  // namespace

mcp::Tool check_process(SandboxResolver resolve, Settings settings) {
  mcp::Tool tool;
  tool.name = "check_process";
  tool.title = "Check on a process";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  tool.output_schema = output_schema();
  tool.annotations = {.read_only = true, .destructive = false, .idempotent = true, .open_world = false};
  tool.call = [resolve = std::move(resolve), settings](const mcp::json& values, const CallContext& context) {
    return call(resolve, settings, values, context);
  };
  return tool;
}

}  // namespace dockbridge::tools
