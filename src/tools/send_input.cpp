#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "tools/cell_report.hpp"
#include "tools/cell_run.hpp"
#include "tools/following.hpp"
#include "tools/process_report.hpp"
#include "tools/tool_table.hpp"
#include "tools/view.hpp"
#include "tools/wait_arguments.hpp"
#include "tools/wait_report.hpp"
#include "util/text.hpp"
#include "wire/terminal.hpp"

namespace dockbridge::tools {

namespace send_input {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::CallLimit;
using sandbox::Offsets;
using sandbox::Once;
using sandbox::Sandbox;
using sandbox::Snapshot;
using sandbox::Taken;

constexpr std::size_t k_max_keys = 100;
/// Longest wait for the program's answer, and for `waitFor`.
constexpr milliseconds k_answer_patience{2000};
constexpr milliseconds k_wait_for_patience{60'000};

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {
      {"processId", {{"type", "string"}}},
      {"input", {{"type", "string"}}},
      {"keys",
       {{"type", "array"},
        {"items", {{"type", "string"}}},
        {"description", fmt::format("{}. Without a terminal only ctrl-c and ctrl-d.", wire::k_key_names)}}},
      {"autoNewline", {{"type", "boolean"}}},
      {"eof", {{"type", "boolean"}, {"description", "Close the input"}}},
      {"paste", {{"type", "boolean"}}},
      {"waitFor", {{"type", "object"}, {"description", "Return at {pattern: \"regex\"}, {idle: 2} or exit instead"}}},
      {"timeout", {{"type", "number"}, {"description", "Seconds (default 2, with waitFor 60)"}}}};
  add_view_arguments(properties);
  return arguments_schema(std::move(properties), {"processId"}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_view_schema(properties);
  properties["accepted"] = {{"type", "integer"}, {"description", "bytes of input the process was given"}};
  return result_schema(std::move(properties));
}

struct Order {
  std::string process;
  std::string input;
  std::vector<std::string> keys;
  bool newline = false;
  bool eof = false;
  bool paste = false;
  wire::WaitCondition until;
  std::optional<Timeout> timeout;
  milliseconds patience{0};
  ViewRequest view;
};

Order read_order(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  Order order;
  read_rationale(arguments, call.settings);
  order.process = arguments.required_text("processId");
  order.input = arguments.text("input").value_or("");
  order.keys = arguments.texts("keys");
  order.eof = arguments.flag("eof", false);
  order.paste = arguments.flag("paste", false);
  order.view = read_view_arguments(arguments);
  const bool has_wait_for = read_wait_for(arguments, order.until, false);  // it replaces the wait for a prompt
  order.until.answer = !has_wait_for;
  order.timeout = read_timeout(arguments, k_max_wait_seconds);
  order.patience = std::min(longest_wait(call), order.timeout  ? order.timeout->value
                                                : has_wait_for ? k_wait_for_patience
                                                               : k_answer_patience);
  // With only eof or keys, no empty line is sent before them.
  const bool only_more = order.input.empty() && (order.eof || !order.keys.empty());
  order.newline = arguments.flag("autoNewline", order.keys.empty()) && !only_more;
  if (!arguments.has("input") && order.keys.empty() && !order.eof) {
    arguments.reject("input", "required unless keys or eof is given");
  }
  if (order.keys.size() > k_max_keys) {
    arguments.reject("keys", fmt::format("must have at most {} entries", k_max_keys));
  }
  for (const std::string& key : order.keys) {
    if (!wire::parse_key(key)) {
      arguments.reject("keys",
                       fmt::format("unknown key '{}'; accepted: {}", printable_line(key, 40), wire::k_key_names));
    }
  }
  return order;
}

Result<Taken> interrupt(Sandbox& sandbox, const std::string& process, const std::optional<Once>& once,
                        const CallLimit& limit) {
  if (once) {
    auto taken = sandbox.control().signal(process, SIGINT, *once, limit);
    return !taken || taken->count > 0 ? std::move(taken)
                                      : fail(ErrorCode::process_ended, "The process ended before it was interrupted");
  }
  const auto done = sandbox.control().signal(process, SIGINT, limit);
  return done ? Result<Taken>(Taken{1, std::nullopt}) : fail(done.error());
}

/// Without a terminal, only ctrl-c and ctrl-d have a meaning.
Result<Taken> press_without_terminal(Sandbox& sandbox, const Order& order, std::optional<Once> once,
                                     const CallLimit& limit) {
  Taken all;
  for (const std::string& key : order.keys) {
    if (key != "ctrl-c" && key != "ctrl-d") {
      return fail(ErrorCode::no_terminal, fmt::format("The process has no terminal for key '{}'", key),
                  "Start the command with tty: true, or send text with input");
    }
    const auto taken = key == "ctrl-c" ? interrupt(sandbox, order.process, once, limit)
                                       : sandbox.control().send_input(order.process, "", true, once, limit);
    if (!taken) {
      return fail(taken.error());
    }
    all.earlier = all.earlier ? all.earlier : taken->earlier;
    if (once) {
      ++once->at;
    }
  }
  return all;
}

Result<Taken> press(Sandbox& sandbox, const Order& order, bool on_terminal, const std::optional<Once>& once,
                    const CallLimit& limit) {
  if (order.keys.empty()) {
    return Taken{};
  }
  if (!on_terminal) {
    return press_without_terminal(sandbox, order, once, limit);
  }
  auto pressed = sandbox.control().press_keys(order.process, order.keys, once, limit);
  return !pressed || pressed->count == order.keys.size()
             ? std::move(pressed)
             : fail(ErrorCode::keys_not_taken, "Keys not sent: the process does not read its terminal");
}

/// Reason why the process cannot accept the input; nullopt if it can.
std::optional<Error> obstacle(const wire::ProcessState& state, const Order& order) {
  if (!state.running()) {
    return Error{ErrorCode::process_ended,
                 fmt::format("{} has ended and accepts no input. {}", process_name(state), end_text(state))};
  }
  if ((!order.input.empty() || order.eof) && !state.stdin_open) {
    return Error{ErrorCode::stdin_closed, fmt::format("The standard input of {} is closed", process_name(state))};
  }
  return std::nullopt;
}

/// Sends text, and the newline or end of file after it. A newline after a paste is not part of the paste.
Result<Taken> type(Sandbox& sandbox, const Order& order, bool on_terminal, std::optional<Once> once,
                   const CallLimit& limit) {
  const bool as_paste = order.paste && on_terminal;
  const std::size_t pasted = as_paste ? order.input.size() - (order.newline ? 1 : 0) : 0;
  Taken all;
  if (pasted > 0) {
    auto taken = sandbox.control().send_input(order.process, std::string_view(order.input).substr(0, pasted), false,
                                              once, limit, true);
    if (!taken || taken->count < pasted || (pasted == order.input.size() && !order.eof)) {
      return taken;
    }
    all = *taken;
    if (once) {
      once->at += pasted;
    }
  }
  auto taken =
      sandbox.control().send_input(order.process, std::string_view(order.input).substr(pasted), order.eof, once, limit);
  if (taken) {
    taken->count += all.count;
    taken->earlier = all.earlier ? all.earlier : taken->earlier;
  }
  return taken;
}

/// Sends the input, and the keys after it. Returns how many bytes of input were accepted.
Result<Taken> deliver(Sandbox& sandbox, const Order& order, bool on_terminal, std::optional<Once> once,
                      const CallLimit& limit) {
  Taken all;
  if (!order.input.empty() || order.eof) {
    auto taken = type(sandbox, order, on_terminal, once, limit);
    if (!taken) {
      return taken;
    }
    all = *taken;
    if (all.count < order.input.size()) {
      return all;  // the keys must follow the rest of the input
    }
  }
  if (once) {
    once->at = order.input.size() + (order.eof ? 1 : 0);
  }
  const auto pressed = press(sandbox, order, on_terminal, once, limit);
  if (!pressed) {
    return fail(pressed.error());
  }
  all.earlier = all.earlier ? all.earlier : pressed->earlier;
  return all;
}

bool was_taken(Sandbox& sandbox, const Order& order, const Once& once, const CallLimit& limit) {
  const auto before = sandbox.control().taken(order.process, once, limit);
  return before && before->has_value();
}

/// With an idempotency key, input that an earlier call sent counts, even if the process accepts no more.
Result<Taken> deliver_once(Sandbox& sandbox, const Order& order, const wire::ProcessState& state,
                           const std::optional<Once>& once, const CallLimit& limit) {
  auto unable = obstacle(state, order);
  if (unable && state.running() && once && was_taken(sandbox, order, *once, limit)) {
    unable.reset();  // the earlier call closed the input, but may not have pressed the keys
  }
  auto given = unable ? fail(*unable) : deliver(sandbox, order, state.terminal, once, limit);
  if (given || !once || (!unable && given.error().code != ErrorCode::process_ended)) {
    return given;
  }
  const auto before = sandbox.control().taken(order.process, *once, limit);
  if (!before) {
    return before.error().code == ErrorCode::idempotency_conflict ? fail(before.error()) : std::move(given);
  }
  return *before ? Taken{std::min((*before)->count, order.input.size()), (*before)->earlier} : std::move(given);
}

ToolResult report(const ToolRequest& call, const Snapshot& snapshot, const View& view, const Order& order,
                  std::size_t accepted) {
  const wire::ProcessState& state = snapshot.state;
  call.show(state);
  std::vector<std::string> notes = view_notes(view);
  if (accepted < order.input.size()) {
    notes.push_back(
        fmt::format("only {} of {} bytes were accepted; the process does not read its input. Send the rest "
                    "later",
                    accepted, order.input.size()));
  }
  note_milliseconds(order.timeout, notes);
  const std::string shown = view_text_with_rest(call, state, view);
  ToolResult result;
  const bool has_earlier = state.out.total + state.err.total > 0;
  const std::string nothing = has_earlier ? "(no new output)" : "(no output)";
  std::string missed;
  if (snapshot.happened == wire::WaitOutcome::nothing && !order.until.answer) {
    missed = happened_text(snapshot, order.until, order.patience);
  } else if (snapshot.happened == wire::WaitOutcome::nothing && state.running() && !state.paused &&
             state.waits_for_input != wire::WaitsForInput::yes) {
    const std::string hint = call.hint("check_process with timeout waits for the answer.");
    missed = hint.empty() ? "" : " " + hint;
  }
  auto news = session_news(call, state, call.limit(), order.view.output.max_bytes);
  if (news && news->has_result) {  // the input has ended the cell, and its result says more than a status
    const std::string both = shown + (shown.empty() || news->result.empty() ? "" : "\n") + news->result;
    result.text = with_notes(both.empty() ? nothing : both, notes);
  } else {
    result.text =
        with_notes(fmt::format("{}\n\n{}{}", shown.empty() ? nothing : shown, status_sentence(state), missed), notes);
  }
  result.facts = view_facts(state, view);
  count_as_shown(call, state, view, result);
  if (news) {
    add_news(std::move(*news), result);
  }
  result.structured = process_fields(state);
  add_view_fields(result.structured, view);
  result.structured["accepted"] = accepted;
  result.outcome = fmt::format("{} bytes sent", accepted);
  return result;
}

ToolResult send_and_report(const ToolRequest& call) {
  Order order = read_order(call);
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  Sandbox& sandbox = call.sandbox;
  const auto limit = call.limit(order.patience);
  const auto before = sandbox.processes().find(order.process, call.context.owner, limit);
  if (!before) {
    return mcp::error_result(before.error());
  }
  order.process = before->state.id;
  const bool on_terminal = before->state.terminal;
  if (order.paste && on_terminal) {
    std::replace(order.input.begin(), order.input.end(), '\n', '\r');  // as terminals paste
  }
  order.view.typed = order.input;
  if (order.newline) {
    order.input.push_back(on_terminal ? '\r' : '\n');  // what the enter key types
  }
  if (order.eof && on_terminal && !order.keys.empty()) {
    order.keys.emplace_back("ctrl-d");  // after the others
    order.eof = false;
  }
  const Offsets seen{before->state.out.total, before->state.err.total};
  const auto& mark = call.context.once;
  const auto once = mark ? std::optional(Once{mark->key, mark->call, 0, seen}) : std::nullopt;
  const auto given = deliver_once(sandbox, order, before->state, once, limit);
  const std::string check = fmt::format("check_process {} shows how the process reacted", process_name(before->state));
  if (!given) {
    return mcp::error_result(
        given.error().outcome_unknown
            ? given.error().with_effect("the input may have been delivered, or may still be delivered", check)
            : given.error());
  }
  // A repetition shows the output since the input was sent for the first time.
  const auto [out, err] = given->earlier.value_or(seen);
  order.until.search_from = {out, err};
  const auto after = follow_session(call, before->state, order.until, order.patience);
  if (!after) {
    return mcp::error_result(after.error().with_effect("the input was delivered", check));
  }
  order.view.output.shown = {out, err};
  if (!given->earlier) {  // output before the input is shown if the client was not shown it
    const Cursor shown = call.shown->known(call.context.client, order.process);
    order.view.output.shown = {std::min(shown.out, out), std::min(shown.err, err)};
  }
  const auto view = look_at(sandbox, *after, order.view, limit);
  return view ? report(call, *after, *view, order, given->count)
              : mcp::error_result(view.error().with_effect("the input was delivered", check));
}

ToolResult send(const ToolRequest& call) {
  ToolResult result = send_and_report(call);
  result.may_be_repeated = result.is_error;
  return result;
}

}  // namespace send_input

const ToolCode k_send_input{send_input::input_schema, send_input::output_schema, send_input::send};

}  // namespace dockbridge::tools
