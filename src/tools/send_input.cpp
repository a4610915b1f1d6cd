#include <fmt/format.h>

#include "tools/process_report.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

namespace {

using mcp::CallContext;
using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::Sandbox;
using sandbox::Snapshot;

/// How long an answer to the input is waited for, and how long a pause ends it.
constexpr milliseconds k_first_answer{500};
constexpr milliseconds k_pause{100};
constexpr milliseconds k_whole_answer{1500};

constexpr const char* k_description =
    "Write to the standard input of a running process, for example to answer a prompt, and get what it printed within "
    "a moment. A newline is added unless autoNewline is false; eof: true closes the input afterwards (what ctrl-D "
    "does).\n"
    "Example: {\"processId\": \"proc_123_abc\", \"input\": \"yes\", \"rationale\": \"confirm the installation\"}";

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {
      {"processId", {{"type", "string"}, {"description", "From execute_command."}}},
      {"input", {{"type", "string"}, {"description", "The text to write; may be empty with eof."}}},
      {"autoNewline", {{"type", "boolean"}, {"description", "Add a newline at the end (default true)."}}},
      {"eof", {{"type", "boolean"}, {"description", "Close the input after this."}}}};
  return arguments_schema(std::move(properties), {"processId", "input"}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_output_schema(properties);
  properties["accepted"] = {{"type", "integer"}, {"description", "bytes of input the process was given"}};
  return result_schema(std::move(properties));
}

/// Waits until the process has printed something and then paused, has ended, or the moment is over.
Result<Snapshot> hear_answer(Sandbox& sandbox, const Snapshot& before, const std::stop_token& stop) {
  const auto deadline = Deadline::after(k_whole_answer);
  Snapshot latest = before;
  milliseconds patience = k_first_answer;
  while (true) {
    const std::pair known(latest.state.out.total, latest.state.err.total);
    auto snapshot = sandbox.wait(before.state.id, std::min(patience, deadline.remaining()), known, stop);
    if (!snapshot) {
      return fail(snapshot.error());
    }
    const bool grew = known != std::pair(snapshot->state.out.total, snapshot->state.err.total);
    latest = std::move(*snapshot);
    if (!latest.state.running() || !grew || deadline.passed()) {
      return latest;
    }
    patience = k_pause;
  }
}

ToolResult call(const SandboxResolver& resolve, const Settings& settings, const mcp::json& values,
                const CallContext& context) {
  Arguments arguments(values);
  read_rationale(arguments, settings);
  const std::string process = arguments.required_text("processId");
  std::string input = arguments.required_text("input");
  const bool eof = arguments.flag("eof", false);
  // Closing the input is often all that is wanted; an empty line before it is not.
  const bool newline = arguments.flag("autoNewline", true) && !(eof && input.empty());
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  if (newline) {
    input.push_back('\n');
  }
  Sandbox& sandbox = resolve(context);
  const auto before = find_own(sandbox, process, context.owner);
  if (!before) {
    return mcp::error_result(before.error());
  }
  if (!before->state.running()) {
    return mcp::error_result({"process_ended", "the process has ended and takes no input: " + end_text(before->state),
                              "check_process shows what it printed"});
  }
  if (!before->state.stdin_open) {
    return mcp::error_result({"stdin_closed", "the input of this process is closed",
                              "Start the command again without stdin, and send no eof before the last input"});
  }
  const auto accepted = sandbox.send_input(process, input, eof);
  if (!accepted) {
    return mcp::error_result(accepted.error());
  }
  const auto after = hear_answer(sandbox, *before, context.interruption.token());
  if (!after) {
    return mcp::error_result(after.error());
  }
  OutputRequest request;
  request.since = Cursor{before->state.out.total, before->state.err.total};
  const auto output = collect_output(sandbox, *after, request);
  if (!output) {
    return mcp::error_result(output.error());
  }
  std::vector<std::string> notes = unknown_argument_notes(arguments);
  if (*accepted < input.size()) {
    notes.push_back(
        fmt::format("only {} of {} bytes were taken: the process does not read its input; send the rest later",
                    *accepted, input.size()));
  }
  const std::string shown = output_text(*output);
  const std::string status =
      after->state.running() ? "Process Status: RUNNING" : "Process Status: COMPLETED\n" + end_text(after->state);
  ToolResult result;
  result.text = with_notes(fmt::format("{}\n\n{}", shown.empty() ? "(no output yet)" : shown, status), notes);
  result.structured = process_fields(after->state);
  add_output_fields(result.structured, *output);
  result.structured["accepted"] = *accepted;
  return result;
}

}  // namespace

mcp::Tool send_input(SandboxResolver resolve, Settings settings) {
  mcp::Tool tool;
  tool.name = "send_input";
  tool.title = "Send input to a process";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  tool.output_schema = output_schema();
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = true};
  tool.call = [resolve = std::move(resolve), settings](const mcp::json& values, const CallContext& context) {
    return call(resolve, settings, values, context);
  };
  return tool;
}

}  // namespace dockbridge::tools
