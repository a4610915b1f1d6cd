#include "tools/cell_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cell_content.hpp"
#include "tools/process_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::json;
using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::CellRecord;
using sandbox::CellStatus;
using sandbox::EndedSession;
using sandbox::Snapshot;

/// Text of a value or an error that a reply shows even if the output has used its room.
constexpr std::size_t k_min_result_bytes = 1000;
constexpr std::size_t k_max_first_line = 80;

void append_part(std::string& text, const std::string& part) {
  if (part.empty()) {
    return;
  }
  text += (text.empty() || text.ends_with('\n') ? "" : "\n") + part;
}

std::string without_newline(std::string text) {
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

/// The start and the end of a text, with the number of bytes between them.
std::string cut_middle(const std::string& text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) {
    return text;
  }
  std::string head = text.substr(0, max_bytes / 3);
  head.resize(head.size() - incomplete_utf8_tail(head));
  std::string tail = text.substr(text.size() - (max_bytes - max_bytes / 3));
  tail.erase(0, partial_utf8_start(tail));
  return fmt::format("{}\n[{} bytes left out]\n{}", head, text.size() - head.size() - tail.size(), tail);
}

std::string error_text(const CellRecord& cell, bool is_session, std::size_t max_bytes) {
  const auto& end = *cell.end;
  if (!end.error) {
    return "";
  }
  const sandbox::CellError& error = *end.error;
  if (error.exit_status && !is_session) {
    const bool has_message = !error.value.empty() && error.value != std::to_string(*error.exit_status);
    const std::string code = *error.exit_status == 0 ? "" : fmt::format("Exit code: {}", *error.exit_status);
    return has_message && *error.exit_status != 0
               ? fmt::format("{}\n{}", cut_middle(to_valid_utf8(error.value).text, max_bytes), code)
               : code;
  }
  std::string text = without_newline(cut_middle(error.traceback, max_bytes));
  if (error.exit_status) {
    text += "\n[the session continues]";
  }
  return text;
}

/// What follows the error of a cell.
std::string state_text(const CellRecord& cell, bool is_session) {
  if (cell.end->status != CellStatus::interrupted || !is_session) {
    return "";
  }
  return cell.end->is_state_kept ? "Interrupted. The state is kept." : "Interrupted. The state is lost.";
}

std::string wait_hint(const ToolRequest& call, const CellReport& report) {
  const std::string name = report.name.empty() ? process_name(report.snapshot.state) : report.name;
  return call.hint(fmt::format("python with session: \"{}\" and no code waits for it.", name));
}

std::string stage_text(const ToolRequest& call, const CellReport& report, bool may_wait) {
  const wire::ProcessState& state = report.snapshot.state;
  const std::string name = process_name(state);
  const auto with_hint = [](const std::string& text, const std::string& hint) {
    return hint.empty() ? text : text + " " + hint;
  };
  switch (report.stage) {
    case CellStage::ended:
      return "";
    case CellStage::died:
      return report.name.empty()
                 ? end_text(state)
                 : fmt::format(
                       "Session {} {}. Its state is lost.", report.name,
                       session_end_text({state, report.session->with_track([](const sandbox::SessionTrack& track) {
                                           return track.has_reached_idle_limit();
                                         }),
                                         report.cell.number, report.cell.number > 0 && !report.cell.end}));
    case CellStage::waits_for_input:
      return with_hint(fmt::format("{} waits for input.", name), call.hint("send_input answers it."));
    case CellStage::quiet: {
      const double silence = static_cast<double>(state.idle_ms) / 1000;
      return with_hint(fmt::format("{} is still running: no output for {:.{}f} s.", name, silence, silence < 1 ? 1 : 0),
                       may_wait ? call.hint(k_may_wait_hint) : wait_hint(call, report));
    }
    case CellStage::waited_enough:
      return with_hint(
          fmt::format("{} is still running after {:g} s.", name, static_cast<double>(report.waited.count()) / 1000),
          may_wait ? call.hint(k_may_wait_hint) : wait_hint(call, report));
  }
  return "";
}

std::string status_word_of(const CellReport& report) {
  switch (report.stage) {
    case CellStage::ended:
      return report.cell.end ? std::string(wire::name_of(report.cell.end->status)) : "died";
    case CellStage::died:
      return "died";
    case CellStage::waits_for_input:
      return "waits_for_input";
    case CellStage::quiet:
    case CellStage::waited_enough:
      break;
  }
  return "running";
}

/// The first line of the reply, about the session as a whole.
std::string session_heading(const CellReport& report) {
  if (report.was_shown) {
    return fmt::format("[cell {} again]", report.cell.number);
  }
  if (!report.is_new || !report.predecessor) {
    return "";
  }
  return fmt::format("[session {} {}; its state is lost. This ran in a new one, {}]", report.name,
                     session_end_text(*report.predecessor), process_name(report.snapshot.state));
}

/// The last line of the first reply of a session.
std::string new_session_line(const CellReport& report) {
  return report.is_new && !report.predecessor && report.stage == CellStage::ended
             ? fmt::format("[new session {}: {}]", report.name, process_name(report.snapshot.state))
             : "";
}

std::string owed_heading(const CellRecord& cell) {
  return fmt::format("[cell {} ended meanwhile: {}]", cell.number, wire::name_of(cell.end->status));
}

/// The output of the cell that this client has not been shown.
Result<View> look_at_cell(const ToolRequest& call, const CellReport& report, ViewRequest request) {
  const CellRecord& first = report.owed ? *report.owed : report.cell;
  const wire::Offsets& from = first.output_from;
  request.output.shown = {from.first, from.second};
  if (!report.was_shown) {
    const Cursor shown = call.shown->known(call.context.client, report.snapshot.state.id);
    request.output.shown = {std::max(from.first, shown.out), std::max(from.second, shown.err)};
  }
  const bool is_bounded = report.stage == CellStage::ended && report.cell.end && !report.name.empty();
  const Snapshot snapshot =
      is_bounded ? sandbox::limited_to(report.snapshot, report.cell.end->output_before) : report.snapshot;
  return look_at(call.sandbox, snapshot, request, call.limit());
}

void add_cell_fields(const ToolRequest& call, const CellReport& report, json& fields) {
  const auto& end = report.cell.end;
  if (!report.name.empty()) {
    fields["session"] = report.name;
  }
  fields["status"] = status_word_of(report);
  if (report.cell.number > 0) {
    fields["cell"] = report.cell.number;
  }
  if (end) {
    fields["seconds"] = end->seconds;
    if (!end->bundle.empty()) {
      fields["value"] = bundle_fields(end->bundle);
    }
    if (end->error) {
      fields["error"] = {{"name", end->error->name},
                         {"value", end->error->value},
                         {"traceback", without_newline(end->error->traceback)}};
    }
    if (end->status == CellStatus::interrupted) {
      fields["stateKept"] = end->is_state_kept;
    }
  }
  if (!report.cell.displays.empty()) {
    json displays = json::array();
    for (const sandbox::SessionEvent& display : report.cell.displays) {
      displays.push_back(bundle_fields(display.bundle));
    }
    fields["displays"] = std::move(displays);
  }
  if (!report.name.empty() && report.snapshot.state.running() && call.settings.session_idle_limit.count() > 0) {
    fields["idleDeadline"] = iso_time(unix_milliseconds_now() + call.settings.session_idle_limit.count());
  }
}

}  // namespace

std::string session_end_text(const EndedSession& ended) {
  const std::string in_cell = ended.was_busy ? fmt::format(" in cell {}", ended.cells) : "";
  if (ended.has_reached_idle_limit) {
    return "ended because it was not used (--session-idle-limit)";
  }
  if (ended.state.cause == wire::Cause::memory && !ended.was_busy) {
    return "was ended while idle, because memory was short";
  }
  return fmt::format("ended{}: {}", in_cell, end_text(ended.state));
}

std::string cell_result_text(const ToolRequest& call, const CellRecord& cell, const std::string& process,
                             std::size_t max_bytes, std::vector<json>& blocks) {
  CellContent content = show_cell(call, process, cell, max_bytes);
  blocks.insert(blocks.end(), std::make_move_iterator(content.blocks.begin()),
                std::make_move_iterator(content.blocks.end()));
  std::string text = std::move(content.text);
  if (cell.end) {
    append_part(text, error_text(cell, true, max_bytes));
    append_part(text, state_text(cell, true));
  }
  return text;
}

ToolResult report_cell(const ToolRequest& call, const CellReport& report, const ViewRequest& request,
                       std::vector<std::string> notes) {
  const wire::ProcessState& state = report.snapshot.state;
  const std::string name = process_name(state);
  const bool is_session = !report.name.empty();
  if (report.predecessor) {
    call.show(report.predecessor->state);
  }
  call.show(state, true);
  const auto view = look_at_cell(call, report, request);
  if (!view) {
    return mcp::error_result(view.error().with_effect(
        "the code was run", call.hint(fmt::format("check_process {} shows what it printed", name))));
  }
  for (std::string& note : view_notes(*view)) {
    notes.push_back(std::move(note));
  }
  ToolResult result;
  const std::string output = view_text_with_rest(call, state, *view, false);
  std::size_t room =
      std::max(request.output.max_bytes - std::min(request.output.max_bytes, output.size()), k_min_result_bytes);
  std::string text = session_heading(report);
  if (report.owed) {
    append_part(text, owed_heading(*report.owed));
    append_part(text, cell_result_text(call, *report.owed, name, room / 2, result.more_content));
    append_part(text, fmt::format("[cell {}]", report.cell.number));
  }
  const std::size_t heading = text.size();
  append_part(text, output);
  CellContent content = show_cell(call, name, report.cell, room);
  append_part(text, content.text);
  result.more_content.insert(result.more_content.end(), std::make_move_iterator(content.blocks.begin()),
                             std::make_move_iterator(content.blocks.end()));
  if (report.cell.end) {
    append_part(text, error_text(report.cell, is_session, room));
    append_part(text, state_text(report.cell, is_session));
  }
  if (text.size() == heading && report.stage == CellStage::ended) {
    append_part(text, "(no output)");
  }
  const std::string stage = stage_text(call, report, may_wait_for_input(state, *view));
  if (!stage.empty()) {
    text += (text.empty() ? "" : "\n\n") + stage;
  }
  append_part(text, new_session_line(report));
  result.text = with_notes(std::move(text), notes);
  result.facts = view_facts(state, *view);
  result.facts["status"] = status_word_of(report);
  if (is_session) {
    result.facts["session"] = report.name;
  }
  if (report.cell.number > 0) {
    result.facts["cell"] = report.cell.number;
  }
  count_as_shown(call, state, *view, result);
  if (report.stage == CellStage::ended) {
    result.on_delivered = [session = report.session, cell = report.cell.number,
                           earlier = std::move(result.on_delivered)] {
      session->note_delivered(cell);
      if (earlier) {
        earlier();
      }
    };
  } else if (state.running()) {
    report.session->note_left_running(report.cell.number);
  }
  result.structured = process_fields(state);
  add_view_fields(result.structured, *view);
  add_cell_fields(call, report, result.structured);
  result.outcome = "process " + state.id;
  return result;
}

std::optional<SessionNews> session_news(const ToolRequest& call, const wire::ProcessState& state,
                                        const sandbox::CallLimit& limit, std::size_t max_bytes) {
  if (!state.session) {
    return std::nullopt;
  }
  const auto session = call.sandbox.sessions().handle(state.id, call.context.owner);
  if (const auto read = call.sandbox.sessions().read_events(session, limit, state.side.total); !read) {
    return std::nullopt;
  }
  SessionNews news;
  const auto cell = session->cell();
  if (!cell) {
    return news;
  }
  news.cell = cell->number;
  news.is_busy = !cell->end;
  news.first_line = session->first_line_of_running();
  if (cell->end && !session->was_delivered(cell->number)) {
    news.has_result = true;
    news.result = state.session->kind == wire::CodeKind::shell
                      ? fmt::format("Exit code: {}", cell->end->exit_status.value_or(0))
                      : cell_result_text(call, *cell, process_name(state), max_bytes, news.blocks);
    news.on_delivered = [session, number = cell->number] { session->note_delivered(number); };
  }
  return news;
}

void add_news(SessionNews news, ToolResult& result) {
  result.more_content.insert(result.more_content.end(), std::make_move_iterator(news.blocks.begin()),
                             std::make_move_iterator(news.blocks.end()));
  if (news.on_delivered) {
    result.on_delivered = [first = std::move(news.on_delivered), earlier = std::move(result.on_delivered)] {
      first();
      if (earlier) {
        earlier();
      }
    };
  }
}

std::string session_line(const ToolRequest& call, const wire::ProcessState& state, const sandbox::CallLimit& limit) {
  if (!state.session || state.session->name.empty()) {
    return "";
  }
  const auto session = call.sandbox.sessions().handle(state.id, call.context.owner);
  if (const auto read = call.sandbox.sessions().read_events(session, limit, state.side.total); !read) {
    return "";
  }
  const std::uint64_t cells = session->last_cell();
  const bool is_python = state.session->kind == wire::CodeKind::python;
  const std::string name = fmt::format("{} {}", is_python ? "session" : "shell", state.session->name);
  const char* unit = is_python ? "cell" : "command";
  if (session->is_busy()) {
    const std::string line = session->first_line_of_running();
    const bool waits = state.waits_for_input == wire::WaitsForInput::yes;
    return fmt::format("{} runs {} {}{}{}", name, unit, cells,
                       line.empty() ? "" : fmt::format(" (`{}`)", printable_line(line, k_max_first_line)),
                       state.paused ? ", paused"
                       : waits      ? ", waits for input"
                                    : "");
  }
  const double idle = static_cast<double>(state.idle_ms) / 1000;
  return fmt::format("{}: {} {}{}, idle for {:.{}f} s", name, cells, unit, cells == 1 ? "" : "s", idle,
                     idle < 10 ? 1 : 0);
}

ordered_json cell_schema() {
  const ordered_json text = {{"type", "string"}};
  const ordered_json number = {{"type", "integer"}};
  return {
      {"session", text},
      {"cell", number},
      {"status", {{"type", "string"}, {"enum", {"ok", "error", "interrupted", "running", "waits_for_input", "died"}}}},
      {"value", {{"type", "object"}, {"description", "by MIME type: a text, or path and bytes of a file"}}},
      {"displays", {{"type", "array"}, {"items", {{"type", "object"}}}}},
      {"seconds", {{"type", "number"}}},
      {"stateKept", {{"type", "boolean"}}},
      {"idleDeadline", text},
      {"variables", {{"type", "array"}, {"items", {{"type", "object"}}}}}};
}

}  // namespace dockbridge::tools
