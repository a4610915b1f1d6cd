#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <string_view>

#include "tools/following.hpp"
#include "tools/process_report.hpp"
#include "tools/shell_command.hpp"
#include "tools/tool_table.hpp"
#include "tools/view.hpp"
#include "tools/wait_arguments.hpp"
#include "tools/wait_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace execute_command {

using mcp::ordered_json;
using mcp::StopReason;
using mcp::ToolResult;
using sandbox::Snapshot;
using wire::WaitOutcome;

constexpr double k_max_runtime_seconds = 30.0 * 24 * 3600;
constexpr std::int64_t k_max_rows = 200;
/// A command in the background is watched for this long, because one that cannot run usually ends at once.
constexpr milliseconds k_background_watch{500};
constexpr milliseconds k_default_event_timeout{60'000};
/// Less than the time for which a stopping server waits for its calls.
constexpr milliseconds k_detach_patience{250};
constexpr milliseconds k_note_patience{5000};
constexpr std::size_t k_max_noted_command = 60;

ordered_json input_schema(const Settings& settings) {
  const auto text = [](const char* description) {
    return ordered_json{{"type", "string"}, {"description", description}};
  };
  const auto number = [](const std::string& description) {
    return ordered_json{{"type", "number"}, {"description", description}};
  };
  ordered_json properties = {
      {"command", {{"type", "string"}}},
      {"cwd", text("Default: the workdir")},
      {"env", {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}}},
      {"stdin", text("All of standard input. Without it stdin stays open.")},
      {"timeout", number("Seconds until it continues in the background")},
      {"maxWaitTime", number(fmt::format("Seconds without output until then (default {})",
                                         settings.inactivity_timeout.count() / 1000))},
      {"background", {{"type", "boolean"}, {"description", "Return after 0.5 s"}}},
      {"waitFor", {{"type", "object"}, {"description", "Return at {port: 3000} or {pattern: \"regex\"} instead"}}},
      {"tty", {{"type", "boolean"}, {"description", "Run on a terminal"}}},
      {"maxRuntime", number("Seconds after which it is killed")},
      {"outputLimit", number("Bytes of output after which it is killed")},
      {"nice", {{"type", "integer"}}},
      {"user", text("User of the container to run as")},
      {"shell", text("Name of a shell that keeps cwd, variables and functions for later calls with it")}};
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
  std::optional<Timeout> timeout;
  bool background = false;
  std::optional<wire::WaitCondition> event;  ///< return when this happens, and leave the command running
  ViewRequest view;
  std::string shell{};  ///< run in the shell with this name; empty: in a fresh one
  bool has_cwd = false;
  std::vector<std::string> notes{};
};

/// "~" is left to the agent, because it depends on the user that the command runs as.
std::string absolute(const std::string& path, const std::string& workdir) {
  return path.starts_with('/') || path == "~" || path.starts_with("~/") ? path : workdir + "/" + path;
}

std::optional<wire::TerminalSize> read_terminal(Arguments& arguments) {
  if (!arguments.is_object("tty")) {
    return arguments.flag("tty", false) ? std::optional(wire::k_default_terminal) : std::nullopt;
  }
  auto size = arguments.object("tty");
  const auto columns = size->integer("cols", 1, wire::k_max_terminal_side).value_or(wire::k_default_terminal.columns);
  const auto rows = size->integer("rows", 1, k_max_rows).value_or(wire::k_default_terminal.rows);
  arguments.adopt(*size);
  return wire::TerminalSize{static_cast<std::uint16_t>(columns), static_cast<std::uint16_t>(rows)};
}

constexpr std::array<std::string_view, 5> k_shells = {"bash", "sh", "zsh", "dash", "ash"};

/// Whether this is the name or the path of a shell program.
bool is_shell_program(std::string_view text) {
  return std::find(k_shells.begin(), k_shells.end(), text.substr(text.rfind('/') + 1)) != k_shells.end();
}

/// The command: a string, or the last part of `["bash", "-lc", "..."]`, as other clients pass it.
std::string read_command(Arguments& arguments) {
  if (!arguments.is_array("command")) {
    return arguments.required_text("command");
  }
  std::vector<std::string> words = arguments.texts("command");
  const std::string_view program = words.empty() ? std::string_view() : words.front();
  if (!is_shell_program(program) || words.size() != 3 || (words[1] != "-c" && words[1] != "-lc")) {
    arguments.reject("command", R"(must be a string, or an array such as ["bash", "-lc", "make"])");
    return "";
  }
  return std::move(words[2]);
}

/// A shell is one process for many commands, so properties of a process cannot be given to one of them.
void read_shell(Arguments& arguments, Order& order) {
  order.shell = arguments.text("shell").value_or("");
  if (order.shell.empty()) {
    return;
  }
  if (is_shell_program(order.shell)) {  // as other clients pass it
    order.notes.push_back(fmt::format("shell \"{}\" was ignored: a name such as \"main\" keeps the state",
                                      printable_line(order.shell, k_max_noted_command)));
    order.shell.clear();
    return;
  }
  if (!wire::is_session_name(order.shell)) {
    arguments.reject(
        "shell",
        fmt::format("must be at most {} letters, digits, '.', '_' or '-', and begin with a letter or digit, got {}",
                    wire::k_max_session_name, printable_line(order.shell, k_max_noted_command)));
  }
  const std::array<std::pair<const char*, const char*>, 8> k_excluded = {{
      {"tty", "not together with shell: call without shell"},
      {"user", "not together with shell: call without shell, or use `su` or `sudo`"},
      {"background", "not together with shell: use `command &`"},
      {"waitFor", "not together with shell: use check_process"},
      {"stdin", "not together with shell: use a redirection such as `</dev/null` or `<<'END'`"},
      {"nice", "not together with shell: use `nice -n 5 command`"},
      {"outputLimit", "not together with shell: use `command | head -c 100000`"},
      {"maxRuntime", "not together with shell: use `timeout 60 command`"},
  }};
  const auto excluded =
      std::find_if(k_excluded.begin(), k_excluded.end(), [&](const auto& row) { return arguments.has(row.first); });
  if (excluded != k_excluded.end() && !(std::string_view(excluded->first) == "background" && !order.background) &&
      !(std::string_view(excluded->first) == "tty" && !order.start.terminal)) {
    arguments.reject(excluded->first, excluded->second);
  }
  for (const auto& [name, value] : order.start.environment) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ||
        !std::all_of(name.begin(), name.end(), is_word)) {
      arguments.reject("env",
                       fmt::format("{} is no name of a shell variable", printable_line(name, k_max_noted_command)));
    }
  }
}

Order read_order(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  const std::string& workdir = call.sandbox.workdir();
  Order order;
  order.start.command = read_command(arguments);
  order.start.rationale = read_rationale(arguments, call.settings);
  order.has_cwd = arguments.has("cwd");
  order.start.cwd = absolute(arguments.text("cwd").value_or(workdir), workdir);
  order.start.environment = arguments.environment("env");
  order.start.input = arguments.text("stdin");
  order.start.user = arguments.text("user");
  order.start.terminal = read_terminal(arguments);
  order.start.max_runtime =
      arguments.duration("maxRuntime", 0, k_max_runtime_seconds).value_or(call.settings.max_runtime);
  order.start.output_limit = static_cast<std::uint64_t>(
      arguments.integer("outputLimit", 1, std::numeric_limits<std::int32_t>::max()).value_or(0));
  order.start.nice = static_cast<int>(arguments.integer("nice", 0, wire::k_max_nice).value_or(0));
  order.start.owner = call.context.owner;
  order.start.call = call.context.once ? call.context.once->call : "";
  order.timeout = read_timeout(arguments, k_max_timeout_seconds);
  order.background = arguments.flag("background", false);
  if (wire::WaitCondition until; read_wait_for(arguments, until, true)) {
    order.event = std::move(until);
  }
  order.view = read_view_arguments(arguments);
  order.inactivity =
      arguments.duration("maxWaitTime", 0, k_max_wait_seconds).value_or(call.settings.inactivity_timeout);
  read_shell(arguments, order);
  if (order.start.command.find_first_not_of(" \t\r\n") == std::string::npos) {
    arguments.reject("command", "must not be empty");
  }
  for (const auto* name : {"command", "cwd"}) {
    const std::string& text = std::string_view(name) == "command" ? order.start.command : order.start.cwd;
    if (text.find('\0') != std::string::npos) {
      arguments.reject(name, "contains a NUL byte");
    }
  }
  return order;
}

/// Longest wait before the call leaves the command running.
milliseconds time_to_wait(const ToolRequest& call, const Order& order) {
  const milliseconds usual = order.event        ? k_default_event_timeout
                             : order.background ? k_background_watch
                                                : milliseconds::max();
  const milliseconds wanted = order.timeout ? order.timeout->value : usual;
  return std::min(longest_wait(call), order.background && !order.event ? std::min(wanted, usual) : wanted);
}

/// Waits until the process ends, waits for input, falls silent, or the time is up.
Result<Snapshot> run(const ToolRequest& call, const Order& order) {
  if (order.background && !order.event) {
    return call.sandbox.processes().start(order.start, time_to_wait(call, order), {}, call.limit());
  }
  const wire::WaitCondition until = order.event.value_or(wire::WaitCondition{.idle = order.inactivity, .input = true});
  return Following(call, until, time_to_wait(call, order)).start(order.start);
}

const char* why_returned(const Snapshot& snapshot, bool background) {
  switch (snapshot.happened) {
    case WaitOutcome::ended:
      return "ended";
    case WaitOutcome::input:
      return "waits_for_input";
    case WaitOutcome::idle:
      return "quiet";
    case WaitOutcome::grew:
    case WaitOutcome::pattern:
    case WaitOutcome::port:
    case WaitOutcome::side:
    case WaitOutcome::nothing:
      break;
  }
  return background ? "background" : "waited_enough";
}

/// The first word of the command that names a program which reads standard input if it gets no path; empty if none
/// does.
std::string_view find_filter(std::string_view command) {
  constexpr std::array<std::string_view, 20> k_filters = {"grep", "egrep", "fgrep", "rg",   "ag",   "ack",  "sed",
                                                          "awk",  "gawk",  "cat",   "sort", "uniq", "wc",   "head",
                                                          "tail", "cut",   "tr",    "jq",   "yq",   "xargs"};
  constexpr std::string_view k_between = " \t\n;|&(){}`$\"'<>";
  while (!command.empty()) {
    const std::string_view word = command.substr(0, command.find_first_of(k_between));
    if (std::find(k_filters.begin(), k_filters.end(), word) != k_filters.end()) {
      return word;
    }
    command.remove_prefix(std::min(command.size(), word.size() + 1));
  }
  return {};
}

std::string waits_text(const ToolRequest& call, const wire::ProcessState& state) {
  const std::string_view filter = state.out.total + state.err.total == 0 ? find_filter(state.command) : "";
  const std::string hint = filter.empty()
                               ? ""
                               : fmt::format(
                                     " {} reads standard input if it gets no path: pass a path, or stdin: \"\". "
                                     "send_input with eof: true ends it.",
                                     filter);
  return call.hint(fmt::format("{} waits for input. send_input answers it.{}", process_name(state), hint));
}

/// State of a process that is still running, and what to do next.
std::string running_text(const ToolRequest& call, const Snapshot& snapshot, const Order& order, const View& view) {
  const wire::ProcessState& state = snapshot.state;
  const std::string name = process_name(state);
  if (state.waits_for_input == wire::WaitsForInput::yes) {
    return waits_text(call, state);
  }
  const bool may_wait = may_wait_for_input(state, view);
  const std::string_view next = may_wait ? k_may_wait_hint : "check_process waits for it.";
  if (snapshot.happened == WaitOutcome::idle) {
    const double silence = static_cast<double>(state.idle_ms) / 1000;
    return call.hint(
        fmt::format("{} is still running: no output for {:.{}f} s. {}", name, silence, silence < 1 ? 1 : 0, next));
  }
  if (order.background || order.event) {
    return call.hint(fmt::format("{} is running in the background.{}{}", name, may_wait ? " " : "",
                                 may_wait ? k_may_wait_hint : ""));
  }
  const double waited = static_cast<double>(time_to_wait(call, order).count()) / 1000;
  return call.hint(fmt::format("{} is still running after {:g} s. {}", name, waited, next));
}

/// Whether a full-screen program complains that it has no terminal, as vim does.
bool misses_terminal(const wire::ProcessState& state, const View& view) {
  const auto has = [&](std::string_view text) { return view.output.text.find(text) != std::string::npos; };
  return state.running() && !state.terminal && (has("is not to a terminal") || has("is not from a terminal"));
}

ToolResult report(const ToolRequest& call, const Snapshot& snapshot, const View& view, const Order& order) {
  const wire::ProcessState& state = snapshot.state;
  call.show(state, true);
  std::vector<std::string> notes = view_notes(view);
  if (state.phase == wire::Phase::exited) {
    notes.push_back(fmt::format("processes it started still run as {}", process_name(state)));
  }
  if (misses_terminal(state, view)) {
    notes.emplace_back("the program needs a terminal: start it with tty: true");
  }
  notes.insert(notes.end(), order.notes.begin(), order.notes.end());
  note_milliseconds(order.timeout, notes);
  std::string text = view_text_with_rest(call, state, view);
  std::string status = state.running() ? running_text(call, snapshot, order, view)
                                       : end_text(state) + (text.empty() ? " (no output)" : "");
  if (order.event) {
    status += happened_text(snapshot, *order.event, time_to_wait(call, order));
  }
  text += (text.empty() ? "" : "\n\n") + status;
  ToolResult result;
  result.text = with_notes(std::move(text), notes);
  result.facts = view_facts(state, view);
  count_as_shown(call, state, view, result);
  result.structured = process_fields(state);
  add_view_fields(result.structured, view);
  result.structured["returned"] = why_returned(snapshot, order.background);
  if (order.event) {
    result.structured["happened"] = happened_word(snapshot.happened);
  }
  result.outcome = "process " + state.id;
  return result;
}

/// Reports an error after which the process exists or may exist; `effect` says which.
ToolResult report_lost_process(const Error& error, const std::string& process, std::string_view effect) {
  const std::string check = fmt::format("check_process {} shows whether it ran and what it printed", process);
  ToolResult result = mcp::error_result(error.with_effect(fmt::format("{} as process {}", effect, process), check));
  result.structured["processId"] = process;
  result.facts["processId"] = process;
  return result;
}

/// The server stops while the call waits. The process keeps running, and the reply says where to find it. A start whose
/// reply did not arrive is looked up first, because a stuck container may not have received it.
ToolResult report_detached(const ToolRequest& call, const std::string& process) {
  const auto found =
      call.sandbox.processes().wait(process, milliseconds{0}, {}, {{}, Deadline::after(k_detach_patience)});
  if (!found && found.error().code == ErrorCode::no_such_process) {
    return mcp::error_result({ErrorCode::cancelled, "The server is stopping; the command was not started"});
  }
  if (!found) {
    return report_lost_process(found.error(), process, "the server is stopping; the command may have been started");
  }
  ToolResult result;
  result.text = call.hint(fmt::format(
      "The server is stopping. {} keeps running. check_process finds it after a restart.", process_name(found->state)));
  result.facts = process_facts(found->state);
  result.structured = {{"processId", process}, {"status", "running"}, {"returned", "detached"}};
  return result;
}

/// The token at the end of the process id: the idempotency key, or the handle of the call's task; nullopt: a random
/// one. A background process is never a task.
std::optional<std::string> process_token(const mcp::CallContext& context, const Order& order) {
  if (context.once) {
    return context.once->key;
  }
  return context.handle.empty() || order.background ? std::nullopt : std::optional(context.handle);
}

/// The client has stopped waiting, so the reply is not read. A later reply to this client names the process.
void note_timeout(const ToolRequest& call, const std::string& process) {
  const auto found =
      call.sandbox.processes().wait(process, milliseconds{0}, {}, {{}, Deadline::after(k_note_patience)});
  if (!found) {
    return;  // not started, or only in the list of processes
  }
  const wire::ProcessState& state = found->state;
  // The command may contain the name of a tool, so only the second sentence is a hint.
  call.notices->add(
      {call.context.owner, call.context.client},
      fmt::format("{} `{}` {} when its call timed out.{}", process_name(state),
                  printable_line(state.command, k_max_noted_command), state.running() ? "was left running" : "ended",
                  call.hint(" check_process shows its output.")));
  call.show(state, true);
}

ToolResult run_and_report(const ToolRequest& call, const Order& order) {
  const mcp::Interruption& interruption = call.context.interruption;
  const std::string& id = order.start.id;
  const auto snapshot = run(call, order);
  // The client does not wait any more, but the request was sent.
  const bool left_alone = !snapshot && snapshot.error().code == ErrorCode::cancelled;
  if (left_alone && interruption.reason() == StopReason::cancelled) {
    (void)call.sandbox.control().end(id, wire::Cause::cancelled,
                                     sandbox::k_cancel_grace);  // it may have ended by itself
  }
  if (left_alone && interruption.reason() == StopReason::detached) {
    return report_detached(call, id);
  }
  if (!snapshot) {
    return snapshot.error().outcome_unknown
               ? report_lost_process(snapshot.error(), id,
                                     "the command may have been started, or may still be started,")
               : mcp::error_result(snapshot.error());
  }
  const auto view = look_at(call.sandbox, *snapshot, order.view, call.limit(longest_wait(call)));
  if (!view && view.error().code == ErrorCode::cancelled && interruption.reason() == StopReason::detached) {
    return report_detached(call, id);
  }
  return view ? report(call, *snapshot, *view, order)
              : report_lost_process(view.error(), id, "the command was started");
}

ShellCommand shell_command(const ToolRequest& call, Order& order) {
  ShellCommand command;
  command.shell = order.shell;
  command.patience = time_to_wait(call, order);
  command.inactivity = order.inactivity;
  if (order.has_cwd) {
    command.cwd = order.start.cwd;
  }
  command.command = std::move(order.start.command);
  command.environment = std::move(order.start.environment);
  command.rationale = std::move(order.start.rationale);
  command.view = order.view;
  note_milliseconds(order.timeout, command.notes);
  return command;
}

ToolResult execute_order(const ToolRequest& call) {
  Order order = read_order(call);
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  if (!order.shell.empty()) {
    return run_in_shell(call, shell_command(call, order));
  }
  const mcp::Interruption& interruption = call.context.interruption;
  auto id = call.sandbox.processes().new_process_id(interruption.token(), process_token(call.context, order));
  if (!id) {
    return mcp::error_result(id.error());
  }
  order.start.id = std::move(*id);
  ToolResult result = run_and_report(call, order);
  if (interruption.reason() == StopReason::timed_out) {
    note_timeout(call, order.start.id);
  }
  return result;
}

ToolResult execute(const ToolRequest& call) {
  ToolResult result = execute_order(call);
  result.may_be_repeated = result.is_error;
  return result;
}

}  // namespace execute_command

const ToolCode k_execute_command{execute_command::input_schema, execute_command::output_schema,
                                 execute_command::execute};

}  // namespace dockbridge::tools
