#include <fmt/format.h>

#include "sandbox/patience.hpp"
#include "tools/process_report.hpp"
#include "tools/toolbox.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::CallContext;
using mcp::ordered_json;
using mcp::StopReason;
using mcp::ToolResult;
using sandbox::Sandbox;
using sandbox::Snapshot;
using sandbox::Verdict;

constexpr double k_longest_wait_seconds = 3600;
constexpr double k_longest_runtime_seconds = 30.0 * 24 * 3600;
constexpr milliseconds k_progress_interval{2000};
constexpr milliseconds k_cancel_grace{2000};

constexpr const char* k_description =
    "Run a shell command in the container and get its output and exit code. The command is a bash script (sh where the "
    "image has no bash): pipes, quotes, heredocs, && and several lines work as in a file. It returns when the command "
    "ends. A command that is silent for maxWaitTime seconds, or takes very long, is not stopped: it goes on in the "
    "background and you get its processId for check_process (status, more output) and send_input (answer a prompt). "
    "Start servers and watchers with background: true. A non-zero exit code is a result, not an error.\n"
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
      {"background", {{"type", "boolean"}, {"description", "Return at once and leave the command running."}}},
      {"maxRuntime",
       {{"type", "number"},
        {"minimum", 0},
        {"maximum", k_longest_runtime_seconds},
        {"description", "Seconds after which the command and everything it started is ended (default: never)."}}},
      {"user",
       {{"type", "string"},
        {"description",
         "Run as this user of the container (name, uid, or uid:gid); needs a container that runs as root."}}}};
  add_output_arguments(properties);
  return arguments_schema(std::move(properties), {"command"}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_output_schema(properties);
  properties["returned"] = {{"type", "string"},
                            {"enum", {"ended", "quiet", "waited_enough", "background", "detached"}},
                            {"description", "why the call returned"}};
  return result_schema(std::move(properties));
}

struct Order {
  sandbox::StartRequest start;
  sandbox::Patience patience;
  bool background = false;
  OutputRequest output;
};

std::string absolute(const std::string& path, const std::string& workdir) {
  return path.starts_with('/') ? path : workdir + "/" + path;
}

Order read_order(Arguments& arguments, const Settings& settings, const std::string& workdir, bool can_show_progress) {
  Order order;
  order.start.command = arguments.required_text("command");
  order.start.rationale = read_rationale(arguments, settings);
  order.start.cwd = absolute(arguments.text("cwd").value_or(workdir), workdir);
  order.start.environment = arguments.environment("env");
  order.start.input = arguments.text("stdin");
  order.start.user = arguments.text("user");
  order.start.max_runtime =
      arguments.duration("maxRuntime", 0, k_longest_runtime_seconds).value_or(settings.max_runtime);
  order.background = arguments.flag("background", false);
  order.output = read_output_arguments(arguments);
  order.patience.inactivity =
      arguments.duration("maxWaitTime", 0, k_longest_wait_seconds).value_or(settings.inactivity_timeout);
  order.patience.total = can_show_progress ? settings.max_wait : std::min(settings.max_wait, settings.client_timeout);
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

struct Outcome {
  Snapshot snapshot;
  const char* returned = "ended";
};

std::string progress_message(const wire::ProcessState& state, milliseconds waited) {
  return fmt::format("running for {} s, {} of output", waited.count() / 1000,
                     human_bytes(state.out.total + state.err.total));
}

/// Stays with the process until it ends or patience does.
Result<Outcome> follow(Sandbox& sandbox, const Order& order, const CallContext& context) {
  const auto stop = context.interruption.token();
  const auto began = Clock::now();
  const auto slice = [&](milliseconds next) {
    return context.report_progress ? std::min(next, k_progress_interval) : next;
  };
  const milliseconds first = order.background ? milliseconds{0} : slice(judge(order.patience, {}, {}).next);
  auto snapshot = sandbox.start(order.start, first, stop);
  while (snapshot && snapshot->state.running()) {
    if (order.background) {
      return Outcome{std::move(*snapshot), "background"};
    }
    const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    const auto step = judge(order.patience, waited, milliseconds(snapshot->state.idle_ms));
    if (step.verdict != Verdict::keep_waiting) {
      return Outcome{std::move(*snapshot), step.verdict == Verdict::quiet ? "quiet" : "waited_enough"};
    }
    if (context.report_progress) {
      context.report_progress(progress_message(snapshot->state, waited));
    }
    snapshot = sandbox.wait(order.start.id, slice(step.next), std::nullopt, stop);
  }
  if (!snapshot) {
    return fail(snapshot.error());
  }
  return Outcome{std::move(*snapshot), "ended"};
}

std::string hint_for(const Outcome& outcome) {
  const std::string id = outcome.snapshot.state.id;
  const std::string_view returned = outcome.returned;
  const std::string why = returned == "background" ? "Started in the background."
                          : returned == "quiet"    ? "No output for a while: left running in the background."
                                                   : "Still running: left in the background.";
  return fmt::format(
      "{} Process ID: {}\nUse check_process with this id for its status and further output, and "
      "send_input to answer a prompt.",
      why, id);
}

ToolResult tell(const Outcome& outcome, const ShownOutput& output, std::vector<std::string> notes) {
  const wire::ProcessState& state = outcome.snapshot.state;
  for (std::string& note : output_notes(output)) {
    notes.push_back(std::move(note));
  }
  if (state.phase == wire::Phase::exited) {
    notes.push_back(
        fmt::format("something the command started still runs; check_process {} reads its output", state.id));
  }
  std::string text = output_text(output);
  if (state.running()) {
    text += (text.empty() ? "" : "\n\n") + hint_for(outcome);
  } else if (text.empty() && state.end == wire::EndKind::exit && state.end_code == 0) {
    text = "Command executed successfully (no output)\nExit code: 0";
  } else {
    text += (text.empty() ? "" : "\n\n") + end_text(state);
  }
  ToolResult result;
  result.text = with_notes(std::move(text), notes);
  result.structured = process_fields(state);
  add_output_fields(result.structured, output);
  result.structured["returned"] = outcome.returned;
  return result;
}

/// The client or the server goes away: the process stays, and whoever still listens is told where to find it.
ToolResult tell_detached(const std::string& process) {
  ToolResult result;
  result.text = fmt::format(
      "The server is stopping; the command goes on. Process ID: {}\nUse check_process with this "
      "id after a restart.",
      process);
  result.structured = {{"processId", process}, {"status", "running"}, {"returned", "detached"}};
  return result;
}

ToolResult call(const SandboxResolver& resolve, const Settings& settings, const mcp::json& values,
                const CallContext& context) {
  Sandbox& sandbox = resolve(context);
  Arguments arguments(values);
  Order order = read_order(arguments, settings, sandbox.workdir(), static_cast<bool>(context.report_progress));
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  auto id = sandbox.new_process_id(context.interruption.token());
  if (!id) {
    return mcp::error_result(id.error());
  }
  order.start.id = *id;
  order.start.owner = context.owner;
  auto outcome = follow(sandbox, order, context);
  // Nobody waits for it any more, but it was sent.
  const bool left_alone = !outcome && outcome.error().code == "cancelled";
  if (left_alone && context.interruption.reason() == StopReason::cancelled) {
    (void)sandbox.end(*id, wire::Cause::cancelled, k_cancel_grace);  // it may have ended by itself
  }
  if (left_alone && context.interruption.reason() == StopReason::detached) {
    return tell_detached(*id);
  }
  if (!outcome) {
    return mcp::error_result(outcome.error());
  }
  const auto output = collect_output(sandbox, outcome->snapshot, order.output);
  if (!output) {
    return mcp::error_result(output.error());
  }
  return tell(*outcome, *output, unknown_argument_notes(arguments));
}

}  // namespace

mcp::Tool execute_command(SandboxResolver resolve, Settings settings) {
  mcp::Tool tool;
  tool.name = "execute_command";
  tool.title = "Run a command in the container";
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
