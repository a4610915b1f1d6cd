#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>

#include "tools/cell_report.hpp"
#include "tools/cell_run.hpp"
#include "tools/process_report.hpp"
#include "tools/session_export.hpp"
#include "tools/tool_table.hpp"
#include "tools/view.hpp"
#include "tools/wait_arguments.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace python {

using mcp::json;
using mcp::ordered_json;
using mcp::StopReason;
using mcp::ToolResult;
using sandbox::SessionHandle;
using sandbox::SessionKey;
using sandbox::Snapshot;

constexpr double k_max_runtime_seconds = 30.0 * 24 * 3600;
constexpr std::size_t k_max_code = 8UL * 1024 * 1024;
constexpr std::size_t k_max_label = 80;
/// A driver that gets no code ends. Only a server that dies between the start and the code leaves one.
constexpr milliseconds k_unused_limit{60'000};
constexpr milliseconds k_reset_grace{1000};
constexpr milliseconds k_reset_patience{5000};
constexpr milliseconds k_interrupt_patience{2000};
constexpr milliseconds k_detach_patience{250};
constexpr milliseconds k_note_patience{5000};
constexpr int k_max_attempts = 4;

ordered_json input_schema(const Settings& settings) {
  const auto typed = [](const char* type) { return ordered_json{{"type", type}}; };
  ordered_json properties = {
      {"code", typed("string")},
      {"session", {{"type", "string"}, {"description", "Any name. The session keeps its state"}}},
      {"reset", typed("boolean")},
      {"variables", {{"type", "boolean"}, {"description", "List variables instead"}}},
      {"interpreter", {{"type", "string"}, {"description", "Path of a Python or venv"}}},
      {"cwd", typed("string")},
      {"env", typed("object")},
      {"stdin", typed("string")},
      {"timeout", typed("number")},
      {"maxWaitTime", typed("number")},
      {"maxRuntime", typed("number")},
      {"maxOutput", typed("integer")}};
  return arguments_schema(std::move(properties), {}, settings);
}

ordered_json output_schema() {
  ordered_json properties = process_schema();
  add_view_schema(properties);
  properties.update(cell_schema());
  ordered_json schema = result_schema(std::move(properties));
  const ordered_json text = {{"type", "string"}};
  schema["properties"]["error"] = object_schema(
      {{"name", text}, {"value", text}, {"traceback", text}, {"code", text}, {"message", text}, {"nextStep", text}},
      {});
  return schema;
}

struct Order {
  std::optional<std::string> code;
  std::string session;  ///< name; empty: none
  std::string process;  ///< id of the process of a session, given in place of its name
  bool reset = false;
  bool lists_variables = false;
  std::optional<ExportFormat> exports;
  std::string interpreter;
  std::optional<std::string> cwd;
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<std::string> input;
  std::optional<Timeout> timeout;
  milliseconds inactivity{0};
  milliseconds max_runtime{0};
  std::string rationale;
  ViewRequest view;
  std::vector<std::string> notes;
};

/// "~" is left to the agent, because it depends on the container's user.
std::string absolute(const std::string& path, const std::string& workdir) {
  return path.starts_with('/') || path == "~" || path.starts_with("~/") ? path : workdir + "/" + path;
}

void read_session(const ToolRequest& call, Order& order) {
  Arguments& arguments = call.arguments;
  const std::string name = arguments.text("session").value_or("");
  if (wire::is_process_id(name) || wire::process_number_in(name)) {
    order.process = name;
  } else if (!name.empty() && !wire::is_session_name(name)) {
    arguments.reject(
        "session",
        fmt::format("must be at most {} letters, digits, '.', '_' or '-', and begin with a letter or digit, got {}",
                    wire::k_max_session_name, printable_line(name, 80)));
  } else {
    order.session = name;
  }
}

Order read_order(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  const std::string& workdir = call.sandbox.workdir();
  Order order;
  order.rationale = read_rationale(arguments, call.settings);
  order.code = arguments.text("code");
  read_session(call, order);
  order.reset = arguments.flag("reset", false);
  order.lists_variables = arguments.flag("variables", false);
  order.interpreter = arguments.text("interpreter").value_or("");
  if (const auto cwd = arguments.text("cwd")) {
    order.cwd = absolute(*cwd, workdir);
  }
  order.environment = arguments.environment("env");
  order.input = arguments.text("stdin");
  order.timeout = read_timeout(arguments, k_max_timeout_seconds);
  order.inactivity =
      arguments.duration("maxWaitTime", 0, k_max_wait_seconds).value_or(call.settings.inactivity_timeout);
  order.max_runtime = arguments.duration("maxRuntime", 0, k_max_runtime_seconds).value_or(call.settings.max_runtime);
  if (const auto format = arguments.text("export")) {
    order.exports = export_format_named(*format);
    if (!order.exports) {
      arguments.reject("export", fmt::format("must be notebook or script, got {}", printable_line(*format, 40)));
    }
  }
  arguments.keep_unlisted("export");
  order.view = read_view_arguments(arguments);
  arguments.keep_unlisted("raw");
  arguments.keep_unlisted("screen");
  note_milliseconds(order.timeout, order.notes);
  const bool has_session = !order.session.empty() || !order.process.empty();
  if (!order.code && !has_session) {
    arguments.reject("code", "required without session");
  }
  if (order.code && order.code->size() > k_max_code) {
    arguments.reject("code",
                     fmt::format("must have at most {}; write it to a file and run that", human_bytes(k_max_code)));
  }
  if (order.input && has_session) {
    arguments.reject("stdin", "only without session; send_input answers input() of a session");
  }
  if (order.code && (order.lists_variables || order.exports)) {
    arguments.reject(order.lists_variables ? "variables" : "export", "not together with code");
  }
  return order;
}

milliseconds time_to_wait(const ToolRequest& call, const Order& order) {
  return std::min(longest_wait(call), order.timeout ? order.timeout->value : milliseconds::max());
}

CellWait wait_terms(const ToolRequest& call, const Order& order) {
  return {time_to_wait(call, order), order.inactivity};
}

/// The first line of the code that says something.
std::string first_line_of(const std::string& code) {
  std::string_view rest = code;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      return printable_line(to_valid_utf8(line.substr(0, k_max_label)).text, k_max_label);
    }
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return "";
}

/// The request to run the code as cell `number`. `prefix` begins the names of figures.
json run_request(const ToolRequest& call, const Order& order, const std::string& key, std::uint64_t number,
                 const std::string& prefix) {
  json request = {{"op", "run"}, {"cell", number}, {"key", key}, {"code", *order.code}};
  request["first"] = first_line_of(*order.code);
  request["figures"] = {{"directory", call.sandbox.workdir() + "/figures"}, {"prefix", prefix}};
  // A warm interpreter was started elsewhere.
  if (number == 1 || order.cwd) {
    request["cwd"] = order.cwd.value_or(call.sandbox.workdir());
  }
  if (!order.environment.empty()) {
    json& variables = request["env"] = json::object();
    for (const auto& [name, value] : order.environment) {
      variables[name] = value;
    }
  }
  return request;
}

/// Length of a text as the driver writes it in JSON: characters beyond ASCII are escaped.
std::uint64_t json_length(std::string_view text) {
  std::uint64_t length = 2;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr unsigned k_four_bytes = 0xF0;
    if (byte >= 0x80) {
      length += byte >= k_four_bytes ? 12 : byte >= 0xC0 ? 6 : 0;
    } else {
      length += c == '"' || c == '\\' ? 2 : 1;
    }
  }
  return length;
}

/// Bytes that the driver writes when it begins the cell of this request.
std::uint64_t begin_length(const json& request) {
  constexpr std::string_view k_fixed = R"({"event":"begin","cell":,"key":,"first":})";
  constexpr std::string_view k_limited = R"(,"limited":true)";
  return k_fixed.size() + 1 + fmt::formatted_size("{}", request["cell"].get<std::uint64_t>()) +
         json_length(request["key"].get_ref<const std::string&>()) +
         json_length(request["first"].get_ref<const std::string&>()) +
         (request.contains("limit") ? k_limited.size() : 0);
}

std::string cell_key(const ToolRequest& call) {
  return call.context.once ? call.context.once->key : sandbox::new_cell_key();
}

wire::CodeSession session_settings(const ToolRequest& call, const Order& order) {
  wire::CodeSession session;
  session.kind = wire::CodeKind::python;
  session.name = order.session;
  session.interpreter = order.interpreter;
  session.idle_limit = order.session.empty() ? k_unused_limit : call.settings.session_idle_limit;
  session.may_use_ipython = call.settings.may_use_ipython;
  session.warm_interpreters = call.settings.warm_interpreters;
  return session;
}

/// Interrupts a cell whose call was cancelled. The reply is not read.
void interrupt_cell(const ToolRequest& call, const SessionHandle& session, std::uint64_t cell, const std::string& key) {
  const sandbox::CallLimit limit({}, Deadline::after(k_interrupt_patience));
  while (!limit.is_over()) {
    if (const auto read = call.sandbox.sessions().read_events(session, limit); !read) {
      return;
    }
    const auto progress = session->progress_of(cell, key);
    if (progress == sandbox::CellProgress::running) {
      (void)call.sandbox.control().signal(session->id(), SIGINT, limit);
      return;
    }
    if (progress != sandbox::CellProgress::unseen) {
      return;
    }
    const auto waited =
        call.sandbox.processes().wait(session->id(), milliseconds(200), {.known_side = session->next_offset()}, limit);
    if (!waited || !waited->state.running()) {
      return;
    }
  }
}

/// The client has stopped waiting, so the reply is not read. A later reply to this client names the process.
void note_timeout(const ToolRequest& call, const SessionHandle& session, const std::string& name) {
  const auto found =
      call.sandbox.processes().wait(session->id(), milliseconds{0}, {}, {{}, Deadline::after(k_note_patience)});
  if (!found) {
    return;
  }
  session->note_left_running(session->last_cell());
  const std::string process = process_name(found->state);
  call.notices->add({call.context.owner, call.context.client},
                    fmt::format("{} was left running when its call timed out.{}", process,
                                call.hint(fmt::format(" python with session: \"{}\" and no code returns its result.",
                                                      name.empty() ? process : name))));
  call.show(found->state, true);
}

/// The server stops while the call waits.
ToolResult report_detached(const ToolRequest& call, const SessionHandle& session, const std::string& name) {
  const auto found =
      call.sandbox.processes().wait(session->id(), milliseconds{0}, {}, {{}, Deadline::after(k_detach_patience)});
  const std::string process = found ? process_name(found->state) : session->id();
  ToolResult result;
  result.text = fmt::format("The server is stopping. {} keeps running.", process) +
                call.hint(fmt::format(" After a restart, python with session: \"{}\" and no code returns its result.",
                                      name.empty() ? process : name));
  result.facts = {{"processId", session->id()}, {"status", "running"}};
  result.structured = {{"processId", session->id()}, {"status", "running"}};
  return result;
}

/// The reply to an error while a cell that was sent is followed.
ToolResult report_lost_cell(const ToolRequest& call, const SessionHandle& session, const std::string& name,
                            std::uint64_t cell, const std::string& key, const Error& error) {
  const StopReason reason = call.context.interruption.reason();
  if (error.code == ErrorCode::cancelled) {
    switch (reason) {
      case StopReason::cancelled:
        if (name.empty()) {
          (void)call.sandbox.control().end(session->id(), wire::Cause::cancelled, sandbox::k_cancel_grace);
        } else {
          interrupt_cell(call, session, cell, key);
        }
        break;
      case StopReason::timed_out:
        note_timeout(call, session, name);
        break;
      case StopReason::detached:
        return report_detached(call, session, name);
      case StopReason::none:
        break;
    }
    return mcp::error_result(error);
  }
  const std::string check = name.empty()
                                ? fmt::format("check_process {} shows what it printed", session->id())
                                : fmt::format("python with session: \"{}\" and no code returns its result", name);
  ToolResult result = mcp::error_result(error.with_effect("the code may have run", check));
  result.structured["processId"] = session->id();
  result.facts["processId"] = session->id();
  return result;
}

// ---- Without a session

ToolResult run_once(const ToolRequest& call, const Order& order) {
  const auto limit = call.limit(time_to_wait(call, order));
  auto& sessions = call.sandbox.sessions();
  const auto& once = call.context.once;
  auto id = call.sandbox.processes().new_process_id(limit.stop(), once ? std::optional(once->key) : std::nullopt);
  if (!id) {
    return mcp::error_result(id.error());
  }
  sandbox::StartRequest start;
  start.id = std::move(*id);
  start.command = "python: " + first_line_of(*order.code);
  start.cwd = order.cwd.value_or(call.sandbox.workdir());
  start.environment = order.environment;
  start.input = order.input;
  start.max_runtime = order.max_runtime;
  start.session = session_settings(call, order);
  start.owner = call.context.owner;
  start.rationale = order.rationale;
  start.call = once ? once->call : "";
  const Clock::time_point began = Clock::now();
  const auto started = call.sandbox.processes().start(start, milliseconds(0), {}, limit);
  if (!started) {
    return mcp::error_result(started.error());
  }
  const SessionHandle session = sessions.handle(started->state.id, call.context.owner);
  sandbox::CodeSessions::note_start(session, started->state, began);
  const std::string key = cell_key(call);
  if (once) {  // an earlier call with this key may have sent the code
    if (const auto read = sessions.read_events(session, limit, started->state.side.total); !read) {
      return report_lost_cell(call, session, "", 1, key, read.error());
    }
  }
  const sandbox::CellOrder cell{key, first_line_of(*order.code), [&](std::uint64_t number) {
                                  json request = run_request(call, order, key, number, process_name(started->state));
                                  request["last"] = true;
                                  request["ipython"] = false;  // loading it takes longer than most code
                                  return sandbox::request_line(request);
                                }};
  const auto sent = sessions.send_cell(session, cell, limit);
  if (!sent && sent.error().code != ErrorCode::process_ended) {
    return report_lost_cell(call, session, "", 1, key, sent.error());
  }
  auto followed = follow_whole_process(call, session, started->state, wait_terms(call, order));
  if (!followed) {
    return report_lost_cell(call, session, "", 1, key, followed.error());
  }
  if (const auto error = sessions.startup_error(session, followed->snapshot.state, limit)) {
    return mcp::error_result(*error);
  }
  CellReport report{session, std::move(followed->snapshot), session->cell().value_or(sandbox::CellRecord{}),
                    followed->stage};
  report.waited = time_to_wait(call, order);
  ToolResult result = report_cell(call, report, order.view, order.notes);
  if (!report.snapshot.state.running()) {
    sessions.drop(session->id());
  }
  return result;
}

// ---- In a session

/// A session that a call uses: by its name, or by the id of its process.
struct Target {
  SessionHandle session;
  std::string name;
  bool is_new = false;
  std::optional<sandbox::EndedSession> predecessor{};
};

/// The session of a process. The process may have ended.
Result<std::pair<Target, wire::ProcessState>> target_of_process(const ToolRequest& call, const std::string& process,
                                                                const sandbox::CallLimit& limit) {
  const auto found = call.sandbox.processes().find(process, call.context.owner, limit);
  if (!found) {
    return fail(found.error());
  }
  const wire::ProcessState& state = found->state;
  if (!state.session || state.session->kind != wire::CodeKind::python) {
    return fail(ErrorCode::bad_arguments, fmt::format("{} is not a Python session", process_name(state)));
  }
  Target target{call.sandbox.sessions().handle(state.id, call.context.owner), state.session->name};
  if (const auto read = call.sandbox.sessions().read_events(target.session, limit, state.side.total); !read) {
    return fail(read.error());
  }
  return std::pair(std::move(target), state);
}

SessionKey key_of(const ToolRequest& call, const std::string& name) {
  return {call.context.owner, wire::CodeKind::python, name};
}

/// Whether the process of a session no longer exists.
bool is_gone(ErrorCode code) {
  constexpr std::array k_codes = {ErrorCode::process_ended, ErrorCode::process_gone, ErrorCode::no_such_process,
                                  ErrorCode::process_expired};
  return std::find(k_codes.begin(), k_codes.end(), code) != k_codes.end();
}

/// The text for `interpreter` if an existing session uses another one.
void note_interpreter(const Order& order, const Target& target, std::vector<std::string>& notes) {
  if (order.interpreter.empty() || target.is_new) {
    return;
  }
  const auto ready = target.session->with_track([](const sandbox::SessionTrack& track) { return track.ready(); });
  if (ready && ready->executable != order.interpreter && ready->prefix != order.interpreter) {
    notes.push_back(fmt::format("the session uses {}; with reset: true it starts again with another interpreter",
                                printable_line(ready->executable, 200)));
  }
}

/// Ends the session, so that the next call starts a new one without a remark.
Result<void> end_session(const ToolRequest& call, const std::string& name, const sandbox::CallLimit& limit) {
  const auto key = key_of(call, name);
  const auto live = call.sandbox.sessions().find(key, limit);
  if (!live) {
    return fail(live.error());
  }
  if (!*live) {
    const auto ended = call.sandbox.sessions().latest(key, limit);
    if (ended && *ended) {
      call.sandbox.sessions().note_end_is_known((*ended)->id);
    }
    return {};
  }
  const std::string& id = (*live)->id();
  call.sandbox.sessions().forget(key, id);
  call.sandbox.sessions().note_end_is_known(id);
  const auto ended = call.sandbox.control().end(id, wire::Cause::terminated, k_reset_grace, limit);
  if (!ended) {
    return is_gone(ended.error().code) ? Result<void>() : fail(ended.error());
  }
  const auto waited = call.sandbox.processes().wait(id, k_reset_patience, {.closed = true}, limit);
  if (waited) {
    call.show(waited->state);  // its end is no news
  }
  return waited || is_gone(waited.error().code) ? Result<void>() : fail(waited.error());
}

Result<Target> open_session(const ToolRequest& call, const Order& order, const sandbox::CallLimit& limit) {
  if (!order.process.empty()) {
    auto target = target_of_process(call, order.process, limit);
    if (!target) {
      return fail(target.error());
    }
    if (!target->second.running() || target->first.name.empty()) {
      return fail(ErrorCode::session_lost,
                  fmt::format("{} runs no more code. {}", process_name(target->second), end_text(target->second)),
                  "Use the name of a session");
    }
    return std::move(target->first);
  }
  sandbox::SessionStart start;
  start.owner = call.context.owner;
  start.session = session_settings(call, order);
  start.label = "python session " + order.session;
  start.cwd = order.cwd.value_or(call.sandbox.workdir());
  start.rationale = order.rationale;
  start.environment = order.environment;
  start.max_sessions = call.settings.max_python_sessions;
  auto opened = call.sandbox.sessions().open(start, limit);
  if (!opened) {
    return fail(opened.error());
  }
  return Target{std::move(opened->session), order.session, opened->is_new, std::move(opened->predecessor)};
}

/// The id that replies use for the process.
std::string short_name(const ToolRequest& call, const SessionHandle& session) {
  const auto found = call.sandbox.processes().wait(session->id(), milliseconds(0), {}, call.limit());
  return found ? process_name(found->state) : session->id();
}

/// Reason why a process that has ended never ran code; nullopt if it did, or the reason is unknown.
std::optional<Error> failed_start(const ToolRequest& call, const SessionHandle& session,
                                  const sandbox::CallLimit& limit) {
  const auto now = call.sandbox.processes().wait(session->id(), milliseconds(0), {}, limit);
  if (!now || !call.sandbox.sessions().read_events(session, limit, now->state.side.total)) {
    return std::nullopt;
  }
  return call.sandbox.sessions().startup_error(session, now->state, limit);
}

/// The result of a cell that this server has left running and that has ended since.
std::optional<sandbox::CellRecord> owed_result(const SessionHandle& session) {
  return session->owes_last_result() ? session->cell() : std::nullopt;
}

struct CodeRun {
  Target target;
  std::optional<sandbox::CellRecord> owed;
  std::uint64_t number = 0;
  FollowedCell followed{};
};

ToolResult report_run(const ToolRequest& call, const Order& order, CodeRun run) {
  const auto limit = call.limit(time_to_wait(call, order));
  auto record = find_cell(call, run.target.session, run.number, limit);
  if (!record) {
    return report_lost_cell(call, run.target.session, run.target.name, run.number, "", record.error());
  }
  std::vector<std::string> notes = order.notes;
  note_interpreter(order, run.target, notes);
  if (order.max_runtime.count() > 0 && run.followed.has_begun && !record->is_limited) {
    notes.emplace_back("maxRuntime does not apply: the code of this session uses SIGALRM itself");
  }
  CellReport report{run.target.session, std::move(run.followed.snapshot), std::move(*record), run.followed.stage,
                    run.target.name};
  report.is_new = run.target.is_new;
  report.predecessor = std::move(run.target.predecessor);
  report.owed = std::move(run.owed);
  report.waited = time_to_wait(call, order);
  ToolResult result = report_cell(call, report, order.view, std::move(notes));
  if (report.stage == CellStage::died) {
    call.sandbox.sessions().forget(key_of(call, run.target.name), run.target.session->id());
  }
  return result;
}

ToolResult run_in_session(const ToolRequest& call, const Order& order) {
  const auto limit = call.limit(time_to_wait(call, order));
  auto& sessions = call.sandbox.sessions();
  const std::string key = cell_key(call);
  std::optional<sandbox::EndedSession> predecessor;
  bool is_new = false;
  for (int attempt = 0; attempt < k_max_attempts; ++attempt) {
    auto target = open_session(call, order, limit);
    if (!target) {
      return mcp::error_result(target.error());
    }
    const SessionHandle session = target->session;
    if (target->predecessor) {
      predecessor = std::move(target->predecessor);
    }
    is_new = is_new || target->is_new;
    if (call.context.once) {  // an earlier call with this key may have sent the code
      if (const auto read = sessions.read_events(session, limit); !read && !is_gone(read.error().code)) {
        return mcp::error_result(read.error());
      }
    }
    CellWait wait = wait_terms(call, order);
    const sandbox::CellOrder cell{key, first_line_of(*order.code), [&](std::uint64_t number) {
                                    json request = run_request(call, order, key, number,
                                                               fmt::format("{}-{}", target->name, number));
                                    if (order.max_runtime.count() > 0) {
                                      request["limit"] = static_cast<double>(order.max_runtime.count()) / 1000;
                                    }
                                    wait.begin_bytes = begin_length(request);
                                    return sandbox::request_line(request);
                                  }};
    const auto sent = sessions.send_cell(session, cell, limit);
    if (!sent && is_gone(sent.error().code)) {
      sessions.forget(key_of(call, target->name), session->id());
      if (const auto error = failed_start(call, session, limit)) {
        return mcp::error_result(*error);
      }
      if (sent.error().code == ErrorCode::process_gone) {
        sessions.note_end_is_known(session->id());
        return mcp::error_result({ErrorCode::session_lost,
                                  fmt::format("The state of session {} is lost: the container was restarted. The code "
                                              "was not run",
                                              target->name)});
      }
      continue;
    }
    if (!sent && sent.error().code == ErrorCode::session_busy) {
      return mcp::error_result({ErrorCode::session_busy, sent.error().message,
                                fmt::format("Call without code to wait for it, or interrupt {} with control_process",
                                            short_name(call, session))});
    }
    if (!sent) {
      return !sent.error().outcome_unknown
                 ? mcp::error_result(sent.error())
                 : report_lost_cell(call, session, target->name, session->last_cell() + 1, key, sent.error());
    }
    auto owed = owed_result(session);  // as it was when the cell was sent
    auto followed = follow_cell(call, session, sent->number, key, wait);
    if (!followed) {
      return report_lost_cell(call, session, target->name, sent->number, key, followed.error());
    }
    if (followed->was_refused) {
      continue;  // another server was faster; if its cell still runs, the next attempt says so
    }
    if (followed->stage == CellStage::died && !followed->has_begun) {
      if (const auto error = sessions.startup_error(session, followed->snapshot.state, limit)) {
        return mcp::error_result(*error);
      }
      sessions.forget(key_of(call, target->name), session->id());
      if (followed->snapshot.state.phase == wire::Phase::lost) {
        return report_lost_cell(call, session, target->name, sent->number, key,
                                {ErrorCode::session_lost, "The session was killed together with its keeper"});
      }
      continue;  // it ended before it read the request
    }
    target->is_new = is_new;
    target->predecessor = std::move(predecessor);
    return report_run(call, order, {std::move(*target), std::move(owed), sent->number, std::move(*followed)});
  }
  return mcp::error_result({ErrorCode::session_busy, "The session is used by another server at the same time"});
}

/// The result of the code if an earlier call with the same idempotency key has sent it; nullopt if none has.
std::optional<ToolResult> result_of_earlier_call(const ToolRequest& call, const Order& order) {
  const std::string& key = call.context.once->key;
  const auto earlier =
      call.sandbox.sessions().earlier_cell(key_of(call, order.session), key, call.limit(time_to_wait(call, order)));
  if (!earlier) {
    return mcp::error_result(earlier.error());
  }
  if (!*earlier) {
    return std::nullopt;
  }
  const auto& [session, cell] = **earlier;
  auto followed = follow_cell(call, session, cell, key, wait_terms(call, order));
  if (!followed) {
    return report_lost_cell(call, session, order.session, cell, key, followed.error());
  }
  return report_run(call, order, {{session, order.session}, std::nullopt, cell, std::move(*followed)});
}

/// Without code: the result of the running cell, or of the last one.
ToolResult await_cell(const ToolRequest& call, const Order& order) {
  const auto limit = call.limit(time_to_wait(call, order));
  auto& sessions = call.sandbox.sessions();
  std::string process = order.process;
  if (process.empty()) {
    const auto latest = sessions.latest(key_of(call, order.session), limit);
    if (!latest) {
      return mcp::error_result(latest.error());
    }
    if (!*latest) {
      return mcp::error_result(
          {ErrorCode::bad_arguments, fmt::format("There is no session {}", order.session), "Pass code to start it"});
    }
    process = (*latest)->id;
  }
  auto found = target_of_process(call, process, limit);
  if (!found) {
    return mcp::error_result(found.error());
  }
  auto& [target, state] = *found;
  const std::uint64_t number = target.session->last_cell();
  if (number == 0) {
    return mcp::error_result(
        state.running()
            ? Error{ErrorCode::bad_arguments, fmt::format("Session {} has run no code yet", target.name), "Pass code"}
            : Error{ErrorCode::session_lost,
                    fmt::format("{} has ended before it ran code. {}", process_name(state), end_text(state))});
  }
  const auto cell = target.session->cell();
  CodeRun run{target, std::nullopt, number};
  const bool is_one_off = target.name.empty();
  auto followed = is_one_off
                      ? follow_whole_process(call, target.session, state, wait_terms(call, order))
                      : follow_cell(call, target.session, number, cell ? cell->key : "", wait_terms(call, order));
  if (!followed) {
    return report_lost_cell(call, target.session, target.name, number, cell ? cell->key : "", followed.error());
  }
  run.followed = std::move(*followed);
  if (run.followed.stage == CellStage::ended && target.session->was_delivered(number)) {
    auto record = find_cell(call, target.session, number, limit);
    if (!record) {
      return mcp::error_result(record.error());
    }
    CellReport report{target.session, std::move(run.followed.snapshot), std::move(*record), CellStage::ended,
                      target.name};
    report.was_shown = true;
    return report_cell(call, report, order.view, order.notes);
  }
  return report_run(call, order, std::move(run));
}

// ---- Other requests to a session

Result<Target> live_session(const ToolRequest& call, const Order& order, const sandbox::CallLimit& limit) {
  if (!order.process.empty()) {
    auto target = target_of_process(call, order.process, limit);
    return target ? Result<Target>(std::move(target->first)) : fail(target.error());
  }
  auto session = call.sandbox.sessions().find(key_of(call, order.session), limit);
  if (!session) {
    return fail(session.error());
  }
  return *session ? Result<Target>(Target{std::move(*session), order.session})
                  : fail(ErrorCode::session_lost, fmt::format("There is no session {}", order.session),
                         "Pass code to start it");
}

std::string variable_line(const sandbox::SessionVariable& variable) {
  std::string line = printable_line(variable.name, 200) + ": " + printable_line(variable.type, 200);
  if (!variable.shape.empty()) {
    line += fmt::format(" ({})", fmt::join(variable.shape, ", "));
  } else if (variable.length) {
    line += fmt::format(" of {}", *variable.length);
  }
  if (variable.bytes) {
    line += ", " + human_bytes(*variable.bytes);
  }
  return line + (variable.text.empty() ? "" : " = " + printable_line(variable.text, 200));
}

ToolResult list_variables(const ToolRequest& call, const Order& order) {
  const auto limit = call.limit();
  auto target = live_session(call, order, limit);
  if (!target) {
    return mcp::error_result(target.error());
  }
  const std::uint64_t number = new_request_number();
  const auto answer = call.sandbox.sessions().ask(
      target->session, number, sandbox::request_line({{"op", "variables"}, {"request", number}}), limit);
  if (!answer) {
    if (is_gone(answer.error().code)) {
      call.sandbox.sessions().forget(key_of(call, target->name), target->session->id());
      return mcp::error_result(
          {ErrorCode::session_lost, fmt::format("Session {} has ended", target->name), "Pass code to start a new one"});
    }
    return mcp::error_result(answer.error());
  }
  ToolResult result;
  json entries = json::array();
  std::size_t left_out = answer->left_out;
  for (const sandbox::SessionVariable& variable : answer->variables) {
    const std::string line = variable_line(variable);
    if (result.text.size() + line.size() > order.view.output.max_bytes) {
      ++left_out;
    } else {
      result.text += (result.text.empty() ? "" : "\n") + line;
    }
    json entry = {{"name", variable.name}, {"type", variable.type}};
    if (!variable.shape.empty()) {
      entry["shape"] = variable.shape;
    }
    if (variable.length) {
      entry["length"] = *variable.length;
    }
    if (variable.bytes) {
      entry["bytes"] = *variable.bytes;
    }
    entries.push_back(std::move(entry));
  }
  if (left_out > 0) {
    result.text += fmt::format("{}[{} more variables]", result.text.empty() ? "" : "\n", left_out);
  }
  if (answer->is_interrupted) {
    result.text += fmt::format("{}[interrupted]", result.text.empty() ? "" : "\n");
  }
  result.text = with_notes(result.text.empty() ? "No variables." : std::move(result.text), order.notes);
  result.structured = {{"session", target->name}, {"variables", std::move(entries)}};
  result.facts = {{"session", target->name}, {"processId", target->session->id()}};
  return result;
}

ToolResult export_session(const ToolRequest& call, const Order& order) {
  const auto limit = call.limit();
  auto target = live_session(call, order, limit);
  if (!target) {
    return mcp::error_result(target.error());
  }
  auto content = session_export(call.sandbox, target->session, *order.exports, limit);
  if (!content) {
    return mcp::error_result(content.error());
  }
  const std::string name = target->name.empty() ? target->session->id() : target->name;
  const std::string extension = *order.exports == ExportFormat::notebook ? "ipynb" : "py";
  const auto path = write_export(call, name, extension, *content);
  if (!path) {
    return mcp::error_result(path.error());
  }
  ToolResult result;
  result.text = "Written to " + *path;
  result.structured = {{"session", target->name}, {"path", *path}};
  return result;
}

ToolResult run_order(const ToolRequest& call) {
  Order order = read_order(call);
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  if (order.lists_variables) {
    return list_variables(call, order);
  }
  if (order.exports) {
    return export_session(call, order);
  }
  if (order.session.empty() && order.process.empty()) {
    return run_once(call, order);
  }
  if (order.reset && !order.process.empty()) {
    return mcp::error_result(
        {ErrorCode::bad_arguments, "reset needs the name of the session", "Call again with its name"});
  }
  if (call.context.once && order.code && !order.session.empty()) {
    if (auto repeated = result_of_earlier_call(call, order)) {
      return std::move(*repeated);
    }
  }
  if (order.reset) {
    if (const auto ended = end_session(call, order.session, call.limit()); !ended) {
      return mcp::error_result(ended.error());
    }
    if (!order.code) {
      ToolResult result;
      result.text = fmt::format("Session {} was reset.", order.session);
      result.structured = {{"session", order.session}};
      return result;
    }
  }
  return order.code ? run_in_session(call, order) : await_cell(call, order);
}

ToolResult run(const ToolRequest& call) {
  ToolResult result = run_order(call);
  result.may_be_repeated = result.is_error;
  return result;
}

}  // namespace python

const ToolCode k_python{python::input_schema, python::output_schema, python::run};

}  // namespace dockbridge::tools
