#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tools/cell_report.hpp"
#include "tools/cell_run.hpp"
#include "tools/following.hpp"
#include "tools/process_list.hpp"
#include "tools/process_report.hpp"
#include "tools/tool_table.hpp"
#include "tools/view.hpp"
#include "tools/wait_arguments.hpp"
#include "tools/wait_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace check_process {

using mcp::ordered_json;
using mcp::StopReason;
using mcp::ToolResult;
using sandbox::Snapshot;

constexpr milliseconds k_default_timeout{60'000};
constexpr std::int64_t k_max_grep_lines = 10'000;
/// Time to collect the output when the server stops.
constexpr milliseconds k_parting_patience{1000};

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {
      {"processId", {{"type", "string"}}},
      {"processIds", {{"type", "array"}, {"items", {{"type", "string"}}}, {"description", "Wait for any of these"}}},
      {"timeout", {{"type", "number"}, {"description", "Seconds to wait (default 60 with waitFor, else 0)"}}},
      {"waitFor", wait_for_schema()},
      {"since", {{"type", "string"}, {"description", "Only output after this cursor of an earlier reply"}}},
      {"all", {{"type", "boolean"}, {"description", "Also output that was shown before"}}},
      {"tail", {{"type", "integer"}, {"description", "Only the last lines"}}},
      {"grep", {{"type", "string"}, {"description", "Only lines that match this regex (RE2)"}}}};
  add_view_arguments(properties);
  return arguments_schema(std::move(properties), {}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_view_schema(properties);
  properties["happened"] = {{"type", "string"},
                            {"enum", {"exit", "pattern", "port", "idle", "input", "timeout"}},
                            {"description", "which of the things waited for it was"}};
  properties["matchedLine"] = {{"type", "string"}};
  properties["processes"] = {{"type", "array"}, {"items", object_schema(process_schema(), {})}};
  properties["leftOut"] = {{"type", "integer"}, {"description", "processes that are not in the list"}};
  return result_schema(std::move(properties));
}

struct Question {
  std::vector<std::string> processes;  ///< empty: list all
  wire::WaitCondition until;
  milliseconds timeout{0};
  ViewRequest view;
  bool only_new = false;  ///< leave out what the client was shown before
  std::vector<std::string> notes;
};

std::optional<sandbox::GrepRequest> read_grep(Arguments& arguments) {
  sandbox::GrepRequest request;
  if (!arguments.is_object("grep")) {
    const auto pattern = arguments.text("grep");
    request.pattern = pattern.value_or("");
    return pattern ? std::optional(request) : std::nullopt;
  }
  auto wanted = arguments.object("grep");
  request.pattern = wanted->required_text("pattern");
  request.ignore_case = wanted->flag("ignoreCase", false);
  request.context = static_cast<std::size_t>(wanted->integer("context", 0, wire::k_max_context).value_or(0));
  request.most = static_cast<std::size_t>(
      wanted->integer("maxLines", 1, k_max_grep_lines).value_or(static_cast<std::int64_t>(request.most)));
  arguments.adopt(*wanted);
  return request;
}

Question read_question(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  Question question;
  read_rationale(arguments, call.settings);
  question.processes = read_process_ids(arguments);
  const bool has_wait_for = read_wait_for(arguments, question.until, true);
  question.until.input = question.until.input || !has_wait_for;
  const bool waits = has_wait_for || question.processes.size() > 1;
  const auto timeout = read_timeout(arguments, k_max_wait_seconds);
  question.timeout = timeout ? timeout->value : waits ? k_default_timeout : milliseconds{0};
  note_milliseconds(timeout, question.notes);
  question.view = read_view_arguments(arguments);
  question.view.grep = read_grep(arguments);
  if (const auto lines = arguments.integer("tail", 1, std::numeric_limits<std::int32_t>::max())) {
    question.view.output.tail_lines = static_cast<std::size_t>(*lines);
  }
  question.only_new = !arguments.flag("all", false) && !arguments.has("since") && !question.view.output.tail_lines &&
                      !question.view.grep;
  if (const auto since = arguments.text_or_number("since")) {
    const auto cursor = Cursor::parse(*since);
    if (!cursor) {
      arguments.reject("since", fmt::format("must be a cursor such as \"123:0\" or a number of bytes, got {}",
                                            printable_line(*since, 40)));
    }
    question.view.output.since = cursor;
    question.until.search_from = cursor ? sandbox::Offsets{cursor->out, cursor->err} : sandbox::Offsets{};
  }
  return question;
}

/// Hint for a process that waits for input, or may do so, after a blank; empty if it does not.
std::string input_hint(const ToolRequest& call, const wire::ProcessState& state, const View& view) {
  const bool waits = state.running() && state.waits_for_input == wire::WaitsForInput::yes;
  const std::string hint = waits                             ? call.hint("send_input answers it.")
                           : may_wait_for_input(state, view) ? call.hint(k_may_wait_hint)
                                                             : "";
  return hint.empty() ? "" : " " + hint;
}

ToolResult report(const ToolRequest& call, const Snapshot& snapshot, const View& view, const Question& question) {
  const wire::ProcessState& state = snapshot.state;
  call.show(state);
  const bool waited = question.timeout.count() > 0;
  const std::string before = shown_before_text(call, state, view);
  std::string shown = view_text_with_rest(call, state, view, false);
  if (shown.empty()) {
    const bool has_earlier = !view.found && state.out.total + state.err.total > 0;
    shown = !before.empty() ? "No new output. " + before : has_earlier ? "(no new output)" : "(no output)";
  } else if (!before.empty()) {
    shown = before + "\n" + shown;
  }
  const std::string session = state.running() ? session_line(call, state, call.limit()) : "";
  std::string status = session.empty() ? status_sentence(state) : fmt::format("{}: {}.", process_name(state), session);
  auto news = view.found || question.view.output.tail_lines
                  ? std::nullopt
                  : session_news(call, state, call.limit(), question.view.output.max_bytes);
  if (news && news->has_result && !news->result.empty()) {
    shown = (shown.starts_with("(no ") ? "" : shown + "\n") + news->result;
  }
  const std::string text = fmt::format("{}{}{}\n\n{}", status, input_hint(call, state, view),
                                       waited ? happened_text(snapshot, question.until, question.timeout) : "", shown);
  ToolResult result;
  result.text = with_notes(with_notes(text, view_notes(view)), question.notes);
  result.facts = view_facts(state, view);
  count_as_shown(call, state, view, result);
  if (news) {
    add_news(std::move(*news), result);
  }
  result.structured = process_fields(state);
  add_view_fields(result.structured, view);
  if (waited) {
    result.structured["happened"] = happened_word(snapshot.happened);
  }
  if (snapshot.happened == wire::WaitOutcome::pattern) {
    result.structured["matchedLine"] = snapshot.line;
  }
  return result;
}

/// Waits for several processes. Reports the first for which the wait is over, and each of the others in a line.
ToolResult check_any(const ToolRequest& call, Question question) {
  const auto limit = call.limit(question.timeout);
  std::vector<std::string> ids;
  for (const std::string& process : question.processes) {
    const auto found = call.sandbox.processes().find(process, call.context.owner, limit);
    if (!found) {
      return mcp::error_result(found.error());
    }
    ids.push_back(found->state.id);
  }
  const auto first = follow_any(call, ids, question.until, question.timeout);
  if (!first) {
    return mcp::error_result(first.error());
  }
  const bool is_over = first->happened != wire::WaitOutcome::nothing;
  std::string lines;
  auto processes = mcp::json::array();
  std::vector<std::pair<std::string, std::string>> words;
  for (const std::string& id : ids) {
    const auto now = call.sandbox.processes().find(id, call.context.owner, limit);
    if (now && !(is_over && id == first->state.id)) {
      call.show(now->state);
      lines += "\n" + list_line(now->state);
      words.emplace_back(process_name(now->state), process_facts(now->state)["status"].get<std::string>());
      processes.push_back(process_fields(now->state));
    }
  }
  ToolResult result;
  if (is_over) {
    if (question.only_new) {
      question.view.output.shown = call.shown->known(call.context.client, first->state.id);
    }
    std::size_t& room = question.view.output.max_bytes;
    room = std::max(room / 2, room - std::min(room, lines.size()));
    const auto view = look_at(call.sandbox, *first, question.view, limit);
    if (!view) {
      return mcp::error_result(view.error());
    }
    result = report(call, *first, *view, question);
    result.text += "\n" + lines;
  } else {
    result.text = with_notes(happened_text(*first, question.until, question.timeout).substr(1) + lines, question.notes);
    result.structured = {{"happened", happened_word(first->happened)}};
    result.facts = status_facts(words);
  }
  result.structured["processes"] = std::move(processes);
  return result;
}

ToolResult check(const ToolRequest& call) {
  Question question = read_question(call);
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  if (question.processes.empty()) {
    return list_processes(call);
  }
  question.timeout = std::min(question.timeout, longest_wait(call));
  if (question.processes.size() > 1) {
    return check_any(call, std::move(question));
  }
  auto limit = call.limit(question.timeout);
  auto snapshot = call.sandbox.processes().find(question.processes.front(), call.context.owner, limit);
  if (snapshot && question.timeout.count() > 0) {
    auto later = follow_session(call, snapshot->state, question.until, question.timeout);
    // When the server stops, the reply has the state that is known so far.
    const bool is_detached = !later && later.error().code == ErrorCode::cancelled &&
                             call.context.interruption.reason() == StopReason::detached;
    if (is_detached) {
      limit = limit.without_stop().capped(k_parting_patience);
    } else {
      snapshot = std::move(later);
    }
  }
  if (!snapshot) {
    return mcp::error_result(snapshot.error());
  }
  if (question.only_new) {
    question.view.output.shown = call.shown->known(call.context.client, snapshot->state.id);
  }
  const auto view = look_at(call.sandbox, *snapshot, question.view, limit);
  return view ? report(call, *snapshot, *view, question) : mcp::error_result(view.error());
}

}  // namespace check_process

const ToolCode k_check_process{check_process::input_schema, check_process::output_schema, check_process::check};

}  // namespace dockbridge::tools
