#include "tools/shell_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "sandbox/code_sessions.hpp"
#include "tools/cell_report.hpp"
#include "tools/cell_run.hpp"
#include "tools/process_report.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::StopReason;
using mcp::ToolResult;
using sandbox::CellProgress;
using sandbox::CellRecord;
using sandbox::CellStatus;
using sandbox::SessionHandle;

constexpr int k_max_shell_attempts = 5;
constexpr std::size_t k_max_shell_line = 80;
constexpr milliseconds k_shell_interrupt_patience{2000};
constexpr milliseconds k_shell_note_patience{5000};

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += R"('\'')";
    } else {
      result += c;
    }
  }
  return result + "'";
}

/// The first line of the command that is not empty.
std::string first_command_line(std::string_view command) {
  const std::size_t begin = std::min(command.find_first_not_of(" \t\r\n"), command.size());
  const std::string_view line = command.substr(begin, command.find('\n', begin) - begin);
  return printable_line(to_valid_utf8(line.substr(0, k_max_shell_line)).text, k_max_shell_line);
}

/// As a JSON text in ASCII.
std::string json_line(const std::string& text) {
  return mcp::json(text).dump(-1, ' ', true);
}

/// Bytes that the driver writes when it begins a command.
std::uint64_t shell_begin_length(std::uint64_t number, const std::string& key, const std::string& first) {
  return fmt::formatted_size(R"({{"event":"begin","cell":{},"key":"{}","first":{}}})", number, key, json_line(first)) +
         1;
}

bool has_shell_ended(ErrorCode code) {
  constexpr std::array k_codes = {ErrorCode::process_ended, ErrorCode::process_gone, ErrorCode::no_such_process,
                                  ErrorCode::process_expired};
  return std::find(k_codes.begin(), k_codes.end(), code) != k_codes.end();
}

/// A shell that a call uses.
struct OpenShell {
  SessionHandle session;
  bool is_new = false;
  std::optional<sandbox::EndedSession> predecessor{};
};

/// What a reply is about.
struct ShellReport {
  OpenShell shell;
  CellRecord cell;
  std::optional<CellRecord> owed{};  ///< an earlier command whose end was not reported
  FollowedCell followed;
};

std::string ended_shell_text(const std::string& name, const sandbox::EndedSession& ended) {
  if (ended.has_reached_idle_limit) {
    return fmt::format("shell {} ended because it was not used (--session-idle-limit)", name);
  }
  if (ended.state.cause == wire::Cause::memory && !ended.was_busy) {
    return fmt::format("shell {} was ended while idle, because memory was short", name);
  }
  return fmt::format("shell {} ended: {}", name, end_text(ended.state));
}

std::string shell_heading(const ShellCommand& command, const ShellReport& report) {
  const auto& predecessor = report.shell.predecessor;
  std::string heading = predecessor ? fmt::format("[{}; its state is lost. This ran in a new one, {}]\n",
                                                  ended_shell_text(command.shell, *predecessor),
                                                  process_name(report.followed.snapshot.state))
                                    : "";
  if (report.owed) {
    heading += fmt::format("[the earlier command ended, exit code: {}; its output comes first]\n",
                           report.owed->end->exit_status.value_or(0));
  }
  return heading;
}

std::string with_next_step(const std::string& text, const std::string& hint) {
  return hint.empty() ? text : text + " " + hint;
}

std::string shell_status(const ToolRequest& call, const ShellCommand& command, const ShellReport& report,
                         const View& view, bool has_output) {
  const wire::ProcessState& state = report.followed.snapshot.state;
  const std::string name = process_name(state);
  const std::string next =
      may_wait_for_input(state, view) ? std::string(k_may_wait_hint) : "check_process waits for it.";
  switch (report.followed.stage) {
    case CellStage::ended: {
      const auto& end = *report.cell.end;
      std::string text = fmt::format("Exit code: {}{}", end.exit_status.value_or(0), has_output ? "" : " (no output)");
      if (end.status == CellStatus::interrupted) {
        text += fmt::format(". Interrupted; shell {} keeps its state.", command.shell);
      } else if (end.status == CellStatus::error) {
        text += ". The command was not run: cwd or env could not be applied.";
      }
      return text;
    }
    case CellStage::died:
      return fmt::format("{}{}. Shell {} has ended; its state is lost.", end_text(state),
                         has_output ? "" : " (no output)", command.shell);
    case CellStage::waits_for_input:
      return with_next_step(fmt::format("{} waits for input.", name), call.hint("send_input answers it."));
    case CellStage::quiet: {
      const double silence = static_cast<double>(state.idle_ms) / 1000;
      return with_next_step(
          fmt::format("{} is still running: no output for {:.{}f} s.", name, silence, silence < 1 ? 1 : 0),
          call.hint(next));
    }
    case CellStage::waited_enough:
      return with_next_step(
          fmt::format("{} is still running after {:g} s.", name, static_cast<double>(command.patience.count()) / 1000),
          call.hint(next));
  }
  return "";
}

const char* returned_word(CellStage stage) {
  switch (stage) {
    case CellStage::ended:
    case CellStage::died:
      return "ended";
    case CellStage::waits_for_input:
      return "waits_for_input";
    case CellStage::quiet:
      return "quiet";
    case CellStage::waited_enough:
      break;
  }
  return "waited_enough";
}

Result<View> look_at_command(const ToolRequest& call, const ShellReport& report, ViewRequest request) {
  const wire::Offsets& from = report.owed ? report.owed->output_from : report.cell.output_from;
  const Cursor shown = call.shown->known(call.context.client, report.followed.snapshot.state.id);
  request.output.shown = {std::max(from.first, shown.out), std::max(from.second, shown.err)};
  return look_at(call.sandbox,
                 report.cell.end ? sandbox::limited_to(report.followed.snapshot, report.cell.end->output_before)
                                 : report.followed.snapshot,
                 request, call.limit());
}

ToolResult report_command(const ToolRequest& call, const ShellCommand& command, const ShellReport& report) {
  const wire::ProcessState& state = report.followed.snapshot.state;
  call.show(state, true);
  const auto view = look_at_command(call, report, command.view);
  if (!view) {
    return mcp::error_result(view.error().with_effect(
        "the command was run", call.hint(fmt::format("check_process {} shows what it printed", process_name(state)))));
  }
  std::vector<std::string> notes = view_notes(*view);
  notes.insert(notes.end(), command.notes.begin(), command.notes.end());
  std::string output = view_text_with_rest(call, state, *view);
  const std::string status = shell_status(call, command, report, *view, !output.empty());
  std::string text = shell_heading(command, report) + output;
  text += (text.empty() || text.ends_with('\n') ? "" : "\n\n") + status;
  if (report.shell.is_new && !report.shell.predecessor && state.running()) {
    text += fmt::format("\n[new shell {}: {}]", command.shell, process_name(state));
  }
  ToolResult result;
  result.text = with_notes(std::move(text), notes);
  result.facts = view_facts(state, *view);
  count_as_shown(call, state, *view, result);
  result.structured = process_fields(state);
  add_view_fields(result.structured, *view);
  result.structured["returned"] = returned_word(report.followed.stage);
  if (report.cell.end) {
    for (auto* fields : {&result.facts, &result.structured}) {
      (*fields)["status"] = "completed";
      (*fields)["exitCode"] = report.cell.end->exit_status.value_or(0);
    }
    result.on_delivered = [session = report.shell.session, cell = report.cell.number,
                           earlier = std::move(result.on_delivered)] {
      session->note_delivered(cell);
      if (earlier) {
        earlier();
      }
    };
  } else if (state.running()) {
    report.shell.session->note_left_running(report.cell.number);
  }
  result.outcome = "process " + state.id;
  return result;
}

/// Interrupts a command whose call was cancelled, as soon as it has begun. The reply is not read.
void interrupt_command(const ToolRequest& call, const SessionHandle& session, std::uint64_t cell,
                       const std::string& key) {
  const sandbox::CallLimit limit({}, Deadline::after(k_shell_interrupt_patience));
  while (!limit.is_over()) {
    if (const auto read = call.sandbox.sessions().read_events(session, limit); !read) {
      return;
    }
    const auto progress = session->progress_of(cell, key);
    if (progress == CellProgress::running) {
      (void)call.sandbox.control().signal(session->id(), SIGINT, limit);
    }
    if (progress != CellProgress::unseen) {
      return;
    }
    const auto waited =
        call.sandbox.processes().wait(session->id(), milliseconds(200), {.known_side = session->next_offset()}, limit);
    if (!waited || !waited->state.running()) {
      return;
    }
  }
}

/// The reply to an error while a command that was sent is followed.
ToolResult report_lost_command(const ToolRequest& call, const SessionHandle& session, std::uint64_t cell,
                               const std::string& key, const Error& error) {
  const StopReason reason = call.context.interruption.reason();
  const bool is_stopped = error.code == ErrorCode::cancelled;
  if (is_stopped && reason == StopReason::cancelled) {
    interrupt_command(call, session, cell, key);
  }
  if (is_stopped && (reason == StopReason::timed_out || reason == StopReason::detached)) {
    const auto found =
        call.sandbox.processes().wait(session->id(), milliseconds{0}, {}, {{}, Deadline::after(k_shell_note_patience)});
    const std::string process = found ? process_name(found->state) : session->id();
    session->note_left_running(cell);
    if (reason == StopReason::timed_out && found) {
      call.notices->add({call.context.owner, call.context.client},
                        fmt::format("{} was left running when its call timed out.{}", process,
                                    call.hint(" check_process shows its output.")));
      call.show(found->state, true);
    }
    if (reason == StopReason::detached) {
      ToolResult result;
      result.text = fmt::format("The server is stopping. {} keeps running.", process) +
                    call.hint(" check_process finds it after a restart.");
      result.facts = {{"processId", session->id()}, {"status", "running"}};
      result.structured = {{"processId", session->id()}, {"status", "running"}, {"returned", "detached"}};
      return result;
    }
  }
  if (is_stopped) {
    return mcp::error_result(error);
  }
  ToolResult result = mcp::error_result(error.with_effect(
      "the command may have run", fmt::format("check_process {} shows what it printed", session->id())));
  result.structured["processId"] = session->id();
  result.facts["processId"] = session->id();
  return result;
}

ToolResult report_busy(const ToolRequest& call, const SessionHandle& session, const ShellCommand& command) {
  const auto found = call.sandbox.processes().wait(session->id(), milliseconds(0), {}, call.limit());
  const std::string process = found ? process_name(found->state) : session->id();
  const std::string line = session->first_line_of_running();
  return mcp::error_result(
      {ErrorCode::session_busy,
       fmt::format("Shell {} still runs a command{}", command.shell,
                   line.empty() ? "" : fmt::format(": `{}`", printable_line(line, k_max_shell_line))),
       call.hint(fmt::format("check_process {} with timeout waits for it; control_process interrupts it", process))});
}

Result<OpenShell> open_shell(const ToolRequest& call, const ShellCommand& command, const sandbox::CallLimit& limit) {
  sandbox::SessionStart start;
  start.owner = call.context.owner;
  start.session.kind = wire::CodeKind::shell;
  start.session.name = command.shell;
  start.session.idle_limit = call.settings.session_idle_limit;
  start.label = "shell " + command.shell;
  start.cwd = command.cwd.value_or(call.sandbox.workdir());
  start.rationale = command.rationale;
  start.environment = command.environment;
  start.max_sessions = call.settings.max_python_sessions;
  auto opened = call.sandbox.sessions().open(start, limit);
  if (!opened) {
    return fail(opened.error());
  }
  return OpenShell{std::move(opened->session), opened->is_new, std::move(opened->predecessor)};
}

}  // namespace

std::string shell_setup(const std::optional<std::string>& cwd,
                        const std::vector<std::pair<std::string, std::string>>& environment) {
  std::string setup;
  if (cwd) {
    const bool is_below_home = *cwd == "~" || cwd->starts_with("~/");
    setup = "cd -- " + (is_below_home
                            ? "~/" + shell_quoted(std::string_view(*cwd).substr(std::min<std::size_t>(cwd->size(), 2)))
                            : shell_quoted(*cwd));
  }
  for (const auto& [name, value] : environment) {
    setup += setup.empty() ? "export " : " && export ";
    setup += shell_quoted(fmt::format("{}={}", name, value));
  }
  return setup;
}

std::string shell_request(std::uint64_t number, const std::string& key, const std::string& setup,
                          const std::string& command) {
  const auto lines = [](const std::string& text) {
    return text.empty() ? 0 : std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
  };
  const auto ended = [](const std::string& text) { return text.empty() || text.ends_with('\n') ? "" : "\n"; };
  return fmt::format("run {} {} {} {} {}\n{}{}{}{}", number, key, lines(setup), lines(command),
                     json_line(first_command_line(command)), setup, ended(setup), command, ended(command));
}

namespace {

/// Waits for a command that an earlier call has sent.
ToolResult follow_and_report(const ToolRequest& call, const ShellCommand& command, const SessionHandle& session,
                             std::uint64_t number, const std::string& key) {
  auto followed = follow_cell(call, session, number, key, {command.patience, command.inactivity});
  if (!followed) {
    return report_lost_command(call, session, number, key, followed.error());
  }
  auto record = find_cell(call, session, number, call.limit(command.patience));
  if (!record) {
    return report_lost_command(call, session, number, key, record.error());
  }
  return report_command(call, command, {{session}, std::move(*record), std::nullopt, std::move(*followed)});
}

}  // namespace

ToolResult run_in_shell(const ToolRequest& call, const ShellCommand& command) {
  const auto limit = call.limit(command.patience);
  auto& sessions = call.sandbox.sessions();
  const sandbox::SessionKey name{call.context.owner, wire::CodeKind::shell, command.shell};
  const std::string key = call.context.once ? call.context.once->key : sandbox::new_cell_key();
  const std::string first_line = first_command_line(command.command);
  if (call.context.once) {
    const auto earlier = sessions.earlier_cell(name, key, limit);
    if (!earlier) {
      return mcp::error_result(earlier.error());
    }
    if (*earlier) {
      const auto& [session, number] = **earlier;
      return follow_and_report(call, command, session, number, key);
    }
  }
  std::optional<sandbox::EndedSession> predecessor;
  bool is_new = false;
  for (int attempt = 0; attempt < k_max_shell_attempts; ++attempt) {
    auto shell = open_shell(call, command, limit);
    if (!shell) {
      return mcp::error_result(shell.error());
    }
    const SessionHandle session = shell->session;
    if (shell->predecessor) {
      predecessor = std::move(shell->predecessor);
    }
    is_new = is_new || shell->is_new;
    if (call.context.once) {  // an earlier call with this key may have sent the command
      if (const auto read = sessions.read_events(session, limit); !read && !has_shell_ended(read.error().code)) {
        return mcp::error_result(read.error());
      }
    }
    CellWait wait{command.patience, command.inactivity};
    const sandbox::CellOrder cell{key, first_line, [&](std::uint64_t number) {
                                    wait.begin_bytes = shell_begin_length(number, key, first_line);
                                    // Also for a new shell, because another call may have started it.
                                    return shell_request(number, key, shell_setup(command.cwd, command.environment),
                                                         command.command);
                                  }};
    const auto sent = sessions.send_cell(session, cell, limit);
    if (!sent && has_shell_ended(sent.error().code)) {
      sessions.forget(name, session->id());
      if (sent.error().code == ErrorCode::process_gone) {
        sessions.note_end_is_known(session->id());
        return mcp::error_result({ErrorCode::session_lost,
                                  fmt::format("The state of shell {} is lost: the container was restarted. The command "
                                              "was not run",
                                              command.shell)});
      }
      continue;
    }
    if (!sent && sent.error().code == ErrorCode::session_busy) {
      return report_busy(call, session, command);
    }
    if (!sent) {
      return !sent.error().outcome_unknown
                 ? mcp::error_result(sent.error())
                 : report_lost_command(call, session, session->last_cell() + 1, key, sent.error());
    }
    auto owed = session->owes_last_result() ? session->cell() : std::nullopt;
    auto followed = follow_cell(call, session, sent->number, key, wait);
    if (!followed) {
      return report_lost_command(call, session, sent->number, key, followed.error());
    }
    if (followed->was_refused) {
      continue;  // another server was faster; if its command still runs, the next attempt says so
    }
    if (followed->stage == CellStage::died && !followed->has_begun) {
      sessions.forget(name, session->id());
      if (followed->snapshot.state.phase == wire::Phase::lost) {
        return report_lost_command(call, session, sent->number, key,
                                   {ErrorCode::session_lost, "The shell was killed together with its keeper"});
      }
      continue;  // it ended before it read the request
    }
    auto record = find_cell(call, session, sent->number, limit);
    if (followed->stage == CellStage::died) {
      sessions.forget(name, session->id());
    }
    if (!record) {
      return report_lost_command(call, session, sent->number, key, record.error());
    }
    return report_command(
        call, command,
        {{session, is_new, std::move(predecessor)}, std::move(*record), std::move(owed), std::move(*followed)});
  }
  return mcp::error_result(
      {ErrorCode::session_busy, fmt::format("Shell {} is used by another server at the same time", command.shell)});
}

}  // namespace dockbridge::tools
