#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "tools/following.hpp"
#include "tools/process_report.hpp"
#include "tools/toolbox.hpp"
#include "tools/view.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::StopReason;
using mcp::ToolResult;
using sandbox::Snapshot;
using wire::Happened;

constexpr double k_longest_wait_seconds = 3600;
constexpr double k_longest_runtime_seconds = 30.0 * 24 * 3600;
constexpr std::int64_t k_largest_nice = 19;
constexpr std::int64_t k_largest_columns = 500;
constexpr std::int64_t k_largest_rows = 200;
constexpr wire::TerminalSize k_usual_terminal{80, 24};
constexpr milliseconds k_cancel_grace{2000};
/// Less than a server that stops waits for its calls.
constexpr milliseconds k_detach_patience{250};

constexpr const char* k_description =
    "Run a shell command in the container and get its output and exit code. The command is a bash script (sh where the "
    "image has no bash): pipes, quotes, heredocs, && and several lines work as in a file. It returns when the command "
    "ends, or waits for input. A command that is silent for maxWaitTime seconds, or takes very long, is not stopped: "
    "it "
    "goes on in the background and you get its processId for check_process (status, more output), send_input (answer a "
    "prompt) and control_process (stop it). Start servers and watchers with background: true, and programs that need a "
    "terminal (vim, less, a REPL with line editing) with tty. A non-zero exit code is a result, not an error.\n"
    "Example: {\"command\": \"npm test 2>&1 | tail -40\", \"cwd\": \"/app\", \"rationale\": \"check that the fix "
    "works\"}";

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {
      {"command", {{"type", "string"}, {"description", "The shell command or script to run."}}},
      {"cwd", {{"type", "string"}, {"description", "Working directory in the container; relative to the workdir."}}},
      {"env",
       {{"type", "object"},
        {"additionalProperties", {{"type", "string"}}},
        {"description", "Environment variables to add."}}},
      {"stdin",
       {{"type", "string"}, {"description", "The whole standard input. Without it stdin stays open for send_input."}}},
      {"maxWaitTime",
       {{"type", "number"},
        {"minimum", 0},
        {"maximum", k_longest_wait_seconds},
        {"description", fmt::format("Seconds without output after which the command is left running in the background "
                                    "(default {}).",
                                    settings.inactivity_timeout.count() / 1000)}}},
      {"tty",
       {{"description", "Run it on a terminal, of this size if an object {cols, rows} is given (default 80 x 24)."},
        {"anyOf",
         {{{"type", "boolean"}},
          object_schema({{"cols", {{"type", "integer"}, {"minimum", 1}, {"maximum", k_largest_columns}}},
                         {"rows", {{"type", "integer"}, {"minimum", 1}, {"maximum", k_largest_rows}}}},
                        {})}}}},
      {"background", {{"type", "boolean"}, {"description", "Return at once and leave the command running."}}},
      {"maxRuntime",
       {{"type", "number"},
        {"minimum", 0},
        {"maximum", k_longest_runtime_seconds},
        {"description", "Seconds after which the command and everything it started is ended (default: never)."}}},
      {"outputLimit",
       {{"type", "integer"},
        {"minimum", 1},
        {"description",
         "Bytes of output after which the command and everything it started is ended (default: never)."}}},
      {"nice",
       {{"type", "integer"},
        {"minimum", 0},
        {"maximum", k_largest_nice},
        {"description", "How much it gives way to other processes, from 0 to 19 (default 0)."}}},
      {"user",
       {{"type", "string"},
        {"description",
         "Run as this user of the container (name, uid, or uid:gid); needs a container that runs as root."}}}};
  add_view_arguments(properties);
  return arguments_schema(std::move(properties), {"command"}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_view_schema(properties);
  properties["returned"] = {{"type", "string"},
                            {"enum", {"ended", "waits_for_input", "quiet", "waited_enough", "background", "detached"}},
                            {"description", "why the call returned"}};
  return result_schema(std::move(properties));
}

struct Order {
  sandbox::StartRequest start;
  milliseconds inactivity{0};
  bool background = false;
  ViewRequest view;
};

std::string absolute(const std::string& path, const std::string& workdir) {
  return path.starts_with('/') ? path : workdir + "/" + path;
}

std::optional<wire::TerminalSize> read_terminal(Arguments& arguments) {
  if (!arguments.is_object("tty")) {
    return arguments.flag("tty", false) ? std::optional(k_usual_terminal) : std::nullopt;
  }
  auto size = arguments.object("tty");
  const auto columns = size->integer("cols", 1, k_largest_columns).value_or(k_usual_terminal.columns);
  const auto rows = size->integer("rows", 1, k_largest_rows).value_or(k_usual_terminal.rows);
  arguments.adopt(*size);
  return wire::TerminalSize{static_cast<std::uint16_t>(columns), static_cast<std::uint16_t>(rows)};
}

Order read_order(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  const std::string& workdir = call.sandbox.workdir();
  Order order;
  order.start.command = arguments.required_text("command");
  order.start.rationale = read_rationale(arguments, call.settings);
  order.start.cwd = absolute(arguments.text("cwd").value_or(workdir), workdir);
  order.start.environment = arguments.environment("env");
  order.start.input = arguments.text("stdin");
  order.start.user = arguments.text("user");
  order.start.terminal = read_terminal(arguments);
  order.start.max_runtime =
      arguments.duration("maxRuntime", 0, k_longest_runtime_seconds).value_or(call.settings.max_runtime);
  order.start.output_limit = static_cast<std::uint64_t>(
      arguments.integer("outputLimit", 1, std::numeric_limits<std::int32_t>::max()).value_or(0));
  order.start.nice = static_cast<int>(arguments.integer("nice", 0, k_largest_nice).value_or(0));
  order.start.owner = call.context.owner;
  order.start.call = call.context.once ? call.context.once->call : "";
  order.background = arguments.flag("background", false);
  order.view = read_view_arguments(arguments);
  order.inactivity =
      arguments.duration("maxWaitTime", 0, k_longest_wait_seconds).value_or(call.settings.inactivity_timeout);
  if (order.start.command.find_first_not_of(" \t\r\n") == std::string::npos) {
    arguments.reject("command", "is empty");
  }
  for (const auto* name : {"command", "cwd"}) {
    const std::string& text = std::string_view(name) == "command" ? order.start.command : order.start.cwd;
    if (text.find('\0') != std::string::npos) {
      arguments.reject(name, "holds a NUL byte, which no shell can take");
    }
  }
  return order;
}

/// Stays with the process until it ends, waits for input, falls silent, or the time is up.
Result<Snapshot> run(const ToolCall& call, const Order& order) {
  if (order.background) {
    return call.sandbox.start(order.start, milliseconds{0}, {}, call.limit());
  }
  const sandbox::Until until{.idle = order.inactivity, .input = true};
  return Following(call, until, longest_wait(call)).start(order.start);
}

const char* why_returned(const Snapshot& snapshot, bool background) {
  switch (snapshot.happened) {
    case Happened::ended:
      return "ended";
    case Happened::input:
      return "waits_for_input";
    case Happened::idle:
      return "quiet";
    case Happened::grew:
    case Happened::pattern:
    case Happened::port:
    case Happened::nothing:
      break;
  }
  return background ? "background" : "waited_enough";
}

std::string hint_for(const std::string& id, std::string_view returned) {
  if (returned == "waits_for_input") {
    return fmt::format(
        "The command waits for input. Process ID: {}\nAnswer it with send_input (eof: true to end its input), or stop "
        "it "
        "with control_process.",
        id);
  }
  const std::string why = returned == "background" ? "Started in the background."
                          : returned == "quiet"    ? "No output for a while: left running in the background."
                                                   : "Still running: left in the background.";
  return fmt::format(
      "{} Process ID: {}\nUse check_process with this id for its status and further output, send_input to answer a "
      "prompt, control_process to stop it.",
      why, id);
}

ToolResult tell(const Snapshot& snapshot, const View& view, std::string_view returned) {
  const wire::ProcessState& state = snapshot.state;
  std::vector<std::string> notes = view_notes(view);
  if (state.phase == wire::Phase::exited) {
    notes.push_back(
        fmt::format("something the command started still runs; check_process {} reads its output", state.id));
  }
  std::string text = view_text(view);
  if (state.running()) {
    text += (text.empty() ? "" : "\n\n") + hint_for(state.id, returned);
  } else if (text.empty() && state.end == wire::EndKind::exit && state.end_code == 0) {
    text = "Command executed successfully (no output)\nExit code: 0";
  } else {
    text += (text.empty() ? "" : "\n\n") + end_text(state);
  }
  ToolResult result;
  result.text = with_notes(std::move(text), notes);
  result.structured = process_fields(state);
  add_view_fields(result.structured, view);
  result.structured["returned"] = returned;
  result.outcome = "process " + state.id;
  return result;
}

/// Reports an error after which the process exists or may exist; `effect` says which.
ToolResult tell_lost_sight(const Error& error, const std::string& process, std::string_view effect) {
  const std::string check = fmt::format("check_process {} shows whether it ran and what it printed", process);
  ToolResult result = mcp::error_result(error.with_effect(fmt::format("{} as process {}", effect, process), check));
  result.structured["processId"] = process;
  return result;
}

/// The server stops while the call waits. The process keeps running, and the reply says where to find it. A start whose
/// reply did not arrive is looked up first, because a stuck container may not have received it.
ToolResult tell_detached(const ToolCall& call, const std::string& process) {
  const auto found = call.sandbox.wait(process, milliseconds{0}, {}, {{}, Deadline::after(k_detach_patience)});
  if (!found && found.error().code == "no_such_process") {
    return mcp::error_result({"cancelled", "The server is stopping; the command was not started", "Call again"});
  }
  if (!found) {
    return tell_lost_sight(found.error(), process, "the server is stopping; the command may have been started");
  }
  ToolResult result;
  result.text = fmt::format(
      "The server is stopping; the command keeps running. Process ID: {}\nUse check_process with this id after a "
      "restart.",
      process);
  result.structured = {{"processId", process}, {"status", "running"}, {"returned", "detached"}};
  return result;
}

ToolResult run_and_tell(const ToolCall& call) {
  Order order = read_order(call);
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  const mcp::Interruption& interruption = call.context.interruption;
  const auto& once = call.context.once;
  auto id = call.sandbox.new_process_id(interruption.token(), once ? std::optional(once->key) : std::nullopt);
  if (!id) {
    return mcp::error_result(id.error());
  }
  order.start.id = *id;
  const auto snapshot = run(call, order);
  // Nobody waits for it any more, but it was sent.
  const bool left_alone = !snapshot && snapshot.error().code == "cancelled";
  if (left_alone && interruption.reason() == StopReason::cancelled) {
    (void)call.sandbox.end(*id, wire::Cause::cancelled, k_cancel_grace);  // it may have ended by itself
  }
  if (left_alone && interruption.reason() == StopReason::detached) {
    return tell_detached(call, *id);
  }
  if (!snapshot) {
    return snapshot.error().outcome_unknown
               ? tell_lost_sight(snapshot.error(), *id, "the command may have been started, or may still be started,")
               : mcp::error_result(snapshot.error());
  }
  const auto view = look_at(call.sandbox, *snapshot, order.view, call.limit(longest_wait(call)));
  if (!view && view.error().code == "cancelled" && interruption.reason() == StopReason::detached) {
    return tell_detached(call, *id);
  }
  return view ? tell(*snapshot, *view, why_returned(*snapshot, order.background))
              : tell_lost_sight(view.error(), *id, "the command was started");
}

ToolResult execute(const ToolCall& call) {
  ToolResult result = run_and_tell(call);
  result.may_be_repeated = result.is_error;
  return result;
}

}  // namespace

ToolPlan execute_command(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "execute_command";
  tool.title = "Run a command in the container";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  tool.output_schema = output_schema();
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = true};
  tool.task_support = mcp::TaskSupport::optional;
  return {std::move(tool), execute};
}

}  // namespace dockbridge::tools
