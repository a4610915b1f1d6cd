#include <fmt/format.h>

#include <csignal>

#include "tools/process_report.hpp"
#include "tools/toolbox.hpp"
#include "tools/view.hpp"
#include "util/text.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::Sandbox;
using sandbox::Snapshot;

/// How long an answer to the input is waited for, and how long a pause ends it.
constexpr std::size_t k_most_keys = 100;
constexpr milliseconds k_first_answer{500};
constexpr milliseconds k_pause{100};
constexpr milliseconds k_pause_on_terminal{300};
constexpr milliseconds k_whole_answer{1500};

constexpr const char* k_description =
    "Write to the standard input of a running process, for example to answer a prompt, and get what it printed within "
    "a moment. A newline is added unless autoNewline is false; eof: true closes the input afterwards (what ctrl-D "
    "does). For a command started with tty, keys types keys by name after the input, and the reply shows the screen.\n"
    "Example: {\"processId\": \"proc_123_abc\", \"input\": \"yes\", \"rationale\": \"confirm the installation\"}";

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {
      {"processId", {{"type", "string"}, {"description", "From execute_command."}}},
      {"input", {{"type", "string"}, {"description", "The text to write; not needed with keys or eof."}}},
      {"keys",
       {{"type", "array"},
        {"items", {{"type", "string"}}},
        {"maxItems", k_most_keys},
        {"description", fmt::format("Keys to press on a terminal, one after the other: {}. Without a terminal, ctrl-c "
                                    "interrupts and ctrl-d ends the input.",
                                    wire::k_key_names)}}},
      {"autoNewline", {{"type", "boolean"}, {"description", "Add a newline at the end (default true)."}}},
      {"eof", {{"type", "boolean"}, {"description", "Close the input after this."}}}};
  add_view_arguments(properties);
  return arguments_schema(std::move(properties), {"processId"}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_view_schema(properties);
  properties["accepted"] = {{"type", "integer"}, {"description", "bytes of input the process was given"}};
  return result_schema(std::move(properties));
}

/// Waits until the process has printed something and then paused, waits for more input, has ended, or the moment is
/// over. Keys take a while to arrive: until something was printed, a process that waits for input may not have them.
Result<Snapshot> hear_answer(Sandbox& sandbox, const Snapshot& before, bool has_arrived, const std::stop_token& stop) {
  const auto deadline = Deadline::after(k_whole_answer);
  Snapshot latest = before;
  milliseconds patience = k_first_answer;
  while (true) {
    const sandbox::Until until{.known = sandbox::Offsets{latest.state.out.total, latest.state.err.total},
                               .input = has_arrived};
    auto snapshot = sandbox.wait(before.state.id, std::min(patience, deadline.remaining()), until, stop);
    if (!snapshot) {
      return fail(snapshot.error());
    }
    latest = std::move(*snapshot);
    if (latest.happened != wire::Happened::grew || deadline.passed()) {
      return latest;
    }
    has_arrived = true;
    // On a terminal the first thing that is printed is what was typed.
    patience = before.state.terminal ? k_pause_on_terminal : k_pause;
  }
}

struct Order {
  std::string process;
  std::string input;
  std::vector<std::string> keys;
  bool newline = false;
  bool eof = false;
  ViewRequest view;
};

Order read_order(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  Order order;
  read_rationale(arguments, call.settings);
  order.process = arguments.required_text("processId");
  order.input = arguments.text("input").value_or("");
  order.keys = arguments.texts("keys");
  order.eof = arguments.flag("eof", false);
  order.view = read_view_arguments(arguments);
  // Closing the input, or a key, is often all that is wanted; an empty line before it is not.
  const bool only_more = order.input.empty() && (order.eof || !order.keys.empty());
  order.newline = arguments.flag("autoNewline", order.keys.empty()) && !only_more;
  if (!arguments.has("input") && order.keys.empty() && !order.eof) {
    arguments.reject("input", "is required, unless keys or eof are given");
  }
  if (order.keys.size() > k_most_keys) {
    arguments.reject("keys", fmt::format("has more than {} entries", k_most_keys));
  }
  for (const std::string& key : order.keys) {
    if (!wire::parse_key(key)) {
      arguments.reject(
          "keys", fmt::format("has '{}', which is no key; keys are {}", printable_line(key, 40), wire::k_key_names));
    }
  }
  return order;
}

/// Without a terminal, two keys have a meaning all the same.
Result<void> press_without_terminal(Sandbox& sandbox, const Order& order) {
  for (const std::string& key : order.keys) {
    if (key == "ctrl-c") {
      if (auto done = sandbox.signal(order.process, SIGINT); !done) {
        return done;
      }
    } else if (key == "ctrl-d") {
      if (auto done = sandbox.send_input(order.process, "", true); !done) {
        return fail(done.error());
      }
    } else {
      return fail("no_terminal", fmt::format("the process has no terminal to press '{}' on", key),
                  "Start the command with tty: true, or send text with input");
    }
  }
  return {};
}

Result<void> press(Sandbox& sandbox, const Order& order, bool on_terminal) {
  if (order.keys.empty()) {
    return {};
  }
  if (!on_terminal) {
    return press_without_terminal(sandbox, order);
  }
  const auto pressed = sandbox.press_keys(order.process, order.keys);
  if (!pressed) {
    return fail(pressed.error());
  }
  return *pressed == order.keys.size()
             ? Result<void>()
             : fail("keys_not_taken",
                    "the keys were not pressed: the process does not read its input, or its terminal "
                    "has no emulator left",
                    "Send text with input instead, or try again later");
}

ToolResult tell(const Snapshot& snapshot, const View& view, const Order& order, std::size_t accepted) {
  std::vector<std::string> notes = view_notes(view);
  if (accepted < order.input.size()) {
    notes.push_back(
        fmt::format("only {} of {} bytes were taken: the process does not read its input; send the rest later",
                    accepted, order.input.size()));
  }
  const std::string shown = view_text(view);
  std::string status = status_line(snapshot.state);
  if (!snapshot.state.running() || snapshot.state.waits_for_input == wire::WaitsForInput::yes) {
    status += "\n" + status_text(snapshot.state);
  }
  ToolResult result;
  result.text = with_notes(fmt::format("{}\n\n{}", shown.empty() ? "(no output yet)" : shown, status), notes);
  result.structured = process_fields(snapshot.state);
  add_view_fields(result.structured, view);
  result.structured["accepted"] = accepted;
  return result;
}

ToolResult send(const ToolCall& call) {
  Order order = read_order(call);
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  Sandbox& sandbox = call.sandbox;
  const auto before = find_own(sandbox, order.process, call.context.owner);
  if (!before) {
    return mcp::error_result(before.error());
  }
  if (!before->state.running()) {
    return mcp::error_result({"process_ended", "the process has ended and takes no input: " + end_text(before->state),
                              "check_process shows what it printed"});
  }
  const bool on_terminal = before->state.terminal;
  if (order.newline) {
    order.input.push_back(on_terminal ? '\r' : '\n');  // what the enter key types
  }
  if (order.eof && on_terminal && !order.keys.empty()) {
    order.keys.emplace_back("ctrl-d");  // behind the others
    order.eof = false;
  }
  std::size_t accepted = 0;
  if (!order.input.empty() || order.eof) {
    if (!before->state.stdin_open) {
      return mcp::error_result({"stdin_closed", "the input of this process is closed",
                                "Start the command again without stdin, and send no eof before the last input"});
    }
    const auto taken = sandbox.send_input(order.process, order.input, order.eof);
    if (!taken) {
      return mcp::error_result(taken.error());
    }
    accepted = *taken;
  }
  if (const auto pressed = press(sandbox, order, on_terminal); !pressed) {
    return mcp::error_result(pressed.error());
  }
  const auto after = hear_answer(sandbox, *before, order.keys.empty(), call.context.interruption.token());
  if (!after) {
    return mcp::error_result(after.error());
  }
  order.view.output.since = Cursor{before->state.out.total, before->state.err.total};
  order.view.screen = order.view.screen.value_or(on_terminal && after->state.running());
  const auto view = look_at(sandbox, *after, order.view);
  return view ? tell(*after, *view, order, accepted) : mcp::error_result(view.error());
}

}  // namespace

ToolPlan send_input(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "send_input";
  tool.title = "Send input to a process";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  tool.output_schema = output_schema();
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = true};
  return {std::move(tool), send};
}

}  // namespace dockbridge::tools
