#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "mcp/interruption.hpp"
#include "mcp/log_severity.hpp"
#include "mcp/message.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

class StateSeal;

/// Identifies a call with an idempotency key where it must be made only once. Both are digests of 32 hexadecimal
/// digits, so no text of a client becomes part of a name, and the keys of two owners never collide.
struct OnceMark {
  std::string key;   ///< of the owner and the key
  std::string call;  ///< of the tool and its arguments
};

/// Whether the request of a call is answered with a task, which gets the call's result later.
enum class TaskMode {
  never,       ///< the tool or the client does not support tasks
  when_long,   ///< by `become_task_if_due`, once the call has run for three seconds, or by `become_task`
  from_start,  ///< the client asked for a task and has it
};

/// Detail of the progress messages that the client shows.
enum class ProgressDetail {
  none,       ///< the client shows none
  heartbeat,  ///< that the call runs, and for how long
  output,     ///< also new output of the process
};

/// Describes the call that a tool, prompt or resource serves. The functions may be used until the call returns, by the
/// thread that makes the call or by a thread that it waits for, but never by two threads at a time. `log` and `ask` are
/// empty if the client does not accept them.
struct CallContext {
  std::string correlation_id;  ///< for logs
  std::string owner;           ///< owns everything that the call creates
  const Interruption& interruption;
  TaskMode task_mode = TaskMode::never;
  milliseconds waited{0};  ///< for capacity, before the call was made
  ProgressDetail progress_detail = ProgressDetail::none;
  /// Sends a progress message. Does nothing with `ProgressDetail::none`.
  std::function<void(const std::string& message)> report_progress = [](const std::string&) {};
  /// Answers the request with a task if the call has run for three seconds at `now`. Does nothing in other modes than
  /// `TaskMode::when_long`. A tool that supports tasks calls it every few seconds.
  std::function<void(Clock::time_point now)> become_task_if_due = [](Clock::time_point) {};
  /// The same, without waiting for three seconds.
  std::function<void()> become_task = [] {};
  /// Sends the client a log message.
  std::function<void(LogSeverity severity, const json& data)> log{};
  /// Sends the client several requests, such as {"name": {"method": "elicitation/create", "params": …}}, and waits for
  /// the answers, which have the same names. Clients of the stateless revision get the requests in a result instead
  /// (`InputRequired`), unless the call has become a task.
  std::function<Result<json>(const json& requests)> ask{};
  /// Closes the client's connection while the call continues. Clients that can resume reconnect.
  std::function<void()> hang_up = [] {};
  json client_capabilities = json::object();
  json input_responses = json::object();  ///< the client's answers to an `InputRequired` result
  std::string request_state{};            ///< `InputRequired::state`, as the client sent it back
  const StateSeal* seal = nullptr;        ///< for the request state
  std::optional<OnceMark> once{};         ///< if the call has an idempotency key
  /// For a call that is or may become a task: 32 hexadecimal digits. After a restart of the server, the work that the
  /// call started under this name is found by the task's id (`LostTasks`).
  std::string handle{};
  /// Identifies the client among those of this process: its session, or in the stateless revision its owner.
  std::string client{};
  std::string client_name{};  ///< such as "claude-code"; empty if the client did not say
  /// Whether the caller may use a tool. Empty means it may use all.
  std::function<bool(const std::string& tool)> may_use{};

  /// Whether the client's own timeout does not end its wait: progress restarts the timeout, and a task has none.
  [[nodiscard]] bool outlasts_client_timeout() const { return wants_progress() || task_mode != TaskMode::never; }
  [[nodiscard]] bool wants_progress() const { return progress_detail != ProgressDetail::none; }
};

/// Requests to the client in a result of the stateless revision. The client calls again with the answers.
struct InputRequired {
  json requests = json::object();
  std::string state{};
};

/// An error of the protocol, not of the tool's work.
struct ProtocolError {
  int code = k_invalid_params;
  std::string message;
  json data = nullptr;
};

struct ToolResult {
  std::string text;  ///< for people and models
  json structured;   ///< for programs that ask for it, according to the tool's output schema
  bool is_error = false;
  /// Facts for programs that every reply carries in its `_meta`: ids, codes and cursors, never output. Null means none.
  json facts{};
  std::string subject{};             ///< object of the call, such as a path or process, for the audit log
  std::vector<json> more_content{};  ///< content blocks after the text; the only content if there is no text
  std::optional<InputRequired> input_required{};  ///< instead of all the above
  std::optional<ProtocolError> protocol_error{};  ///< instead of all the above
  /// An error that is not stored for the call's idempotency key, because the tool itself repeats no effect under a key.
  bool may_be_repeated = false;
  /// The effect has taken place, so the result is stored for the key even if the call was cancelled.
  bool effect_complete = false;
  /// An error after which the effect may have taken place. Stored for the key, so that the effect is not repeated.
  bool outcome_unknown = false;
  /// Reported to a repetition after the rest of the result was dropped. At most 58 bytes, such as "revision 3f2a".
  std::string outcome{};
  /// Lines after the text that belong to this reply only. Not stored for an idempotency key.
  std::vector<std::string> notices{};
  /// Called once when the client has the result: after it was written to the transport, or with a task, when the task
  /// has it. Not called if the call was cancelled or the client closed the connection. Not stored for an idempotency
  /// key. Any thread may call it, also after the tool's call; it must not throw, and owns all that it uses.
  std::function<void()> on_delivered{};
};

struct ToolAnnotations {
  bool read_only = false;
  bool destructive = false;
  bool idempotent = false;
  bool open_world = false;
};

/// Content of a reply. Clients differ in which of the two their model receives, so by default a reply has only one.
enum class Representation {
  text,        ///< text and images
  structured,  ///< these, and structuredContent with its schema in tools/list
};

/// Whether a call may be answered with a task.
enum class TaskSupport { forbidden, optional, required };

struct Tool {
  std::string name;
  std::string title;
  std::string description;
  ordered_json input_schema;
  ordered_json output_schema;  ///< null means none
  ToolAnnotations annotations;
  json meta{};  ///< `_meta` of the entry in tools/list; null means none
  /// Runs on a pool thread and may block. Any exception becomes an internal error.
  std::function<ToolResult(const json& arguments, const CallContext& context)> call;
  TaskSupport task_support = TaskSupport::forbidden;
};

/// The result of a tool that failed.
ToolResult error_result(const Error& error);

}  // namespace dockbridge::mcp
