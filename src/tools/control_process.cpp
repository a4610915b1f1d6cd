#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <string_view>

#include "tools/following.hpp"
#include "tools/process_list.hpp"
#include "tools/process_report.hpp"
#include "tools/tool_table.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace control_process {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::Sandbox;
using sandbox::Snapshot;

constexpr double k_max_grace_seconds = 60;
constexpr milliseconds k_default_grace{5000};
/// Longest wait for the effect of an order.
constexpr milliseconds k_moment{200};
constexpr milliseconds k_glance{10};
constexpr milliseconds k_after_kill{2000};
constexpr milliseconds k_interrupt_patience{2000};

enum class Action : std::uint8_t { pause, resume, interrupt, terminate, kill, signal, resize };
constexpr std::array<std::string_view, 7> k_actions = {"pause", "resume", "interrupt", "terminate",
                                                       "kill",  "signal", "resize"};

ordered_json input_schema(const Settings& settings) {
  const ordered_json integer = {{"type", "integer"}};
  ordered_json properties = {{"processId", {{"type", "string"}}},
                             {"processIds", {{"type", "array"}, {"items", {{"type", "string"}}}}},
                             {"action", {{"type", "string"}, {"enum", k_actions}}},
                             {"signal", {{"type", "string"}, {"description", "With action signal: SIGHUP or 1"}}},
                             {"grace", {{"type", "number"}}},
                             {"cols", integer},
                             {"rows", {{"type", "integer"}, {"description", "With cols: terminal size for resize"}}}};
  return arguments_schema(std::move(properties), {"action"}, settings);
}

ordered_json output_schema() {
  return result_schema(process_schema());
}

struct Order {
  std::vector<std::string> processes;
  Action action = Action::pause;
  int signal = 0;
  milliseconds grace{0};
  wire::TerminalSize size;
};

/// "SIGHUP", "hup" and "1" are the same.
std::optional<int> signal_number(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  if (name.starts_with("SIG")) {
    name.erase(0, 3);
  }
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (std::to_string(number) == name || (known != nullptr && name == known)) {
      return number;
    }
  }
  return std::nullopt;
}

Order read_order(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  Order order;
  read_rationale(arguments, call.settings);
  order.processes = read_process_ids(arguments);
  if (order.processes.empty()) {
    arguments.required_text("processId");
  }
  const std::string actions = fmt::format("{}", fmt::join(k_actions, ", "));
  const std::string action = arguments.required_text("action", fmt::format("Call again with action: {}", actions));
  const auto known = std::find(k_actions.begin(), k_actions.end(), action);
  if (known == k_actions.end()) {
    arguments.reject("action", fmt::format("must be one of {}, got {}", actions, printable_line(action, 40)));
  } else {
    order.action = static_cast<Action>(known - k_actions.begin());
  }
  const auto signal = arguments.text_or_number("signal");
  const auto grace = arguments.duration("grace", 0, k_max_grace_seconds);
  const auto columns = arguments.integer("cols", 1, wire::k_max_terminal_side);
  const auto rows = arguments.integer("rows", 1, wire::k_max_terminal_side);
  order.grace = grace.value_or(k_default_grace);
  if (order.action == Action::signal) {
    const auto number = signal ? signal_number(*signal) : std::nullopt;
    if (!number) {
      arguments.reject("signal", fmt::format("must be a signal such as SIGHUP or 1, got {}",
                                             signal ? printable_line(*signal, 40) : "none"));
    }
    order.signal = number.value_or(0);
  }
  if (order.action == Action::resize) {
    if (!columns || !rows) {
      arguments.reject(columns ? "rows" : "cols", "required with resize");
    }
    order.size = {static_cast<std::uint16_t>(columns.value_or(0)), static_cast<std::uint16_t>(rows.value_or(0))};
  }
  return order;
}

Result<void> carry_out(Sandbox& sandbox, const Order& order, const wire::ProcessState& state,
                       const sandbox::CallLimit& limit) {
  switch (order.action) {
    case Action::pause:
      return sandbox.control().signal(state.id, SIGSTOP, limit);
    case Action::resume:
      return sandbox.control().signal(state.id, SIGCONT, limit);
    case Action::interrupt:
      return sandbox.control().signal(state.id, SIGINT, limit);
    case Action::terminate:
      return sandbox.control().end(state.id, wire::Cause::terminated, order.grace, limit);
    case Action::kill:
      return sandbox.control().end(state.id, wire::Cause::terminated, milliseconds{0}, limit);
    case Action::signal:
      return sandbox.control().signal(state.id, order.signal, limit);
    case Action::resize:
      return state.terminal ? sandbox.control().resize(state.id, order.size, limit)
                            : fail(ErrorCode::no_terminal, "The process has no terminal");
  }
  return {};
}

/// Longest wait for the effect of the order.
milliseconds time_to_show(const Order& order) {
  switch (order.action) {
    case Action::terminate:
      return order.grace + k_after_kill;
    case Action::kill:
      return k_after_kill;
    case Action::interrupt:
    case Action::signal:
      return k_moment;
    case Action::pause:
    case Action::resume:
    case Action::resize:
      break;
  }
  return milliseconds{0};
}

Result<Snapshot> await_effect(const ToolRequest& call, const Order& order, const std::string& process,
                              const sandbox::CallLimit& limit) {
  const bool ends = order.action == Action::terminate || order.action == Action::kill;
  const wire::WaitCondition until{.closed = ends};
  auto after = call.sandbox.processes().wait(process, std::min(time_to_show(order), longest_wait(call)), until, limit);
  if (order.action == Action::pause || order.action == Action::resume) {
    const bool wanted = order.action == Action::pause;
    for (const auto deadline = Deadline::after(k_moment);
         after && after->state.running() && after->state.paused != wanted && !deadline.passed();) {
      after = call.sandbox.processes().wait(process, k_glance, until, limit);
    }
  }
  return after;
}

/// Finds the process and takes the action. Returns the process as it was before.
Result<wire::ProcessState> act(const ToolRequest& call, const Order& order, const std::string& process,
                               const sandbox::CallLimit& limit) {
  const auto before = call.sandbox.processes().find(process, call.context.owner, limit);
  if (!before) {
    return fail(before.error());
  }
  const wire::ProcessState& state = before->state;
  const bool nothing_left = state.phase == wire::Phase::lost && state.children == 0;
  if (state.phase == wire::Phase::closed || nothing_left) {
    call.show(state);
    return fail(ErrorCode::process_ended,
                fmt::format("{} has already ended. {}", process_name(state), end_text(state)));
  }
  if (state.session && order.action == Action::interrupt) {
    // Read before the signal, so that the effect can be told.
    const auto session = call.sandbox.sessions().handle(state.id, call.context.owner);
    if (const auto read = call.sandbox.sessions().read_events(session, limit, state.side.total); !read) {
      return fail(read.error());
    }
  }
  if (const auto done = carry_out(call.sandbox, order, state, limit); !done) {
    return fail(done.error().outcome_unknown
                    ? done.error().with_effect("the action may have been taken, or may still be taken",
                                               fmt::format("check_process {} shows its status", process_name(state)))
                    : done.error());
  }
  return state;
}

/// Waits for the end of the cell that a session was running, and says whether its state is kept, as the driver reports
/// it. nullopt if the process is no code session or ran no cell.
Result<std::optional<std::string>> interrupted_text(const ToolRequest& call, const wire::ProcessState& before,
                                                    const sandbox::CallLimit& limit) {
  if (!before.session) {
    return std::nullopt;
  }
  auto& sessions = call.sandbox.sessions();
  const auto session = sessions.handle(before.id, call.context.owner);
  const std::string name = process_name(before);
  const bool is_python = before.session->kind == wire::CodeKind::python;
  const char* unit = is_python ? "cell" : "command";
  const std::uint64_t cell = session->last_cell();
  if (!session->is_busy()) {
    return fmt::format("{} ran no {}; nothing was interrupted.", name, unit);
  }
  const auto deadline = Deadline::after(k_interrupt_patience);
  while (true) {
    const auto now =
        call.sandbox.processes().wait(before.id, deadline.remaining(), {.known_side = session->next_offset()}, limit);
    if (!now) {
      return fail(now.error());
    }
    if (const auto read = sessions.read_events(session, limit, now->state.side.total); !read) {
      return fail(read.error());
    }
    const auto record = session->cell();
    if (record && record->number == cell && record->end) {
      const auto& end = *record->end;
      if (is_python && end.status != sandbox::CellStatus::interrupted) {
        return fmt::format("{}: cell {} ended by itself ({}).", name, cell, wire::name_of(end.status));
      }
      return fmt::format("{}: {} {} was interrupted. {}", name, unit, cell,
                         !is_python || end.is_state_kept ? "The state is kept." : "The state is lost.");
    }
    if (!now->state.running()) {
      return fmt::format("{} The state of the session is lost.", status_sentence(now->state));
    }
    if (deadline.passed()) {
      return fmt::format(
          "{} still runs {} {}: it has not reacted to the interrupt. terminate ends it, and its state is lost.", name,
          unit, cell);
    }
  }
}

Result<Snapshot> see_effect(const ToolRequest& call, const Order& order, const wire::ProcessState& before,
                            const sandbox::CallLimit& limit) {
  auto after = await_effect(call, order, before.id, limit);
  if (!after) {
    return fail(after.error().with_effect("the action was taken",
                                          fmt::format("check_process {} shows its status", process_name(before))));
  }
  call.show(after->state);
  return after;
}

ToolResult control_one(const ToolRequest& call, const Order& order, const sandbox::CallLimit& limit) {
  const auto before = act(call, order, order.processes.front(), limit);
  if (before && order.action == Action::interrupt) {
    const auto text = interrupted_text(call, *before, limit);
    if (text && *text) {
      ToolResult result;
      result.text = **text;
      result.facts = process_facts(*before);
      result.structured = process_fields(*before);
      result.outcome = "process " + before->id;
      return result;
    }
  }
  const auto after = before ? see_effect(call, order, *before, limit) : fail(before.error());
  if (!after) {
    return mcp::error_result(after.error());
  }
  ToolResult result;
  result.text = status_sentence(after->state);
  result.facts = process_facts(after->state);
  result.structured = process_fields(after->state);
  result.outcome = "process " + after->state.id;
  return result;
}

/// The error of one process among several, with its name and the next step.
std::string error_line(const ToolRequest& call, const std::string& process, const Error& error) {
  const bool names_it = error.message.find(process) != std::string::npos;
  const std::string step = call.hint(error.step());
  return (names_it ? "" : process + ": ") + error.message + (step.empty() ? "" : ". " + step);
}

/// Takes the action on all before it waits for the effect on any. One line each.
ToolResult control_all(const ToolRequest& call, const Order& order, const sandbox::CallLimit& limit) {
  std::vector<Result<wire::ProcessState>> acted;
  for (const std::string& process : order.processes) {
    acted.push_back(act(call, order, process, limit));
  }
  ToolResult result;
  result.structured = {{"processes", mcp::json::array()}};
  result.is_error = true;  // unless the action was taken on one of them
  std::vector<std::pair<std::string, std::string>> words;
  for (std::size_t i = 0; i < acted.size(); ++i) {
    const auto after = acted[i] ? see_effect(call, order, *acted[i], limit) : fail(acted[i].error());
    result.is_error = result.is_error && !after;
    result.text += (i == 0 ? "" : "\n") +
                   (after ? status_sentence(after->state) : error_line(call, order.processes[i], after.error()));
    words.emplace_back(order.processes[i], after ? process_facts(after->state)["status"].get<std::string>()
                                                 : std::string(name_of(after.error().code)));
    result.structured["processes"].push_back(
        after ? process_fields(after->state)
              : mcp::json{{"processId", order.processes[i]}, {"error", {{"code", name_of(after.error().code)}}}});
  }
  result.facts = status_facts(words);
  return result;
}

ToolResult control(const ToolRequest& call) {
  const Order order = read_order(call);
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  const auto limit = call.limit(time_to_show(order));
  return order.processes.size() == 1 ? control_one(call, order, limit) : control_all(call, order, limit);
}

}  // namespace control_process

const ToolCode k_control_process{control_process::input_schema, control_process::output_schema,
                                 control_process::control};

}  // namespace dockbridge::tools
