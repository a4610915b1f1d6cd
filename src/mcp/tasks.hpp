#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "mcp/bulletin.hpp"
#include "mcp/interruption.hpp"
#include "mcp/message.hpp"
#include "mcp/tool.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

enum class TaskStatus { working, input_required, completed, failed, cancelled };

/// State of a task as clients see it.
struct TaskState {
  std::string id;
  milliseconds ttl{0};
  std::int64_t created_ms = 0;  ///< Unix time
  std::int64_t updated_ms = 0;  ///< Unix time
  TaskStatus status = TaskStatus::working;
  bool tool_failed = false;
  json result{};                ///< if completed
  ProtocolError error{};        ///< if failed or cancelled
  json asked = json::object();  ///< if input is required

  [[nodiscard]] bool ended() const { return status != TaskStatus::working && status != TaskStatus::input_required; }
  /// The form of the stateless revision, with the result, the error or the input requests.
  [[nodiscard]] json to_json() const;
  /// The form of 2025-11-25, without the result.
  [[nodiscard]] json to_handshake_json() const;
};

inline constexpr milliseconds k_default_task_ttl{3'600'000};
inline constexpr std::size_t k_max_tasks_per_owner = 200;

/// Convert between the handle of a call and the id of its task. nullopt for text that is no such id.
std::string task_id_of(const std::string& handle);
std::optional<std::string> handle_of_task(const std::string& id);
/// The reply of tasks/result for a cancelled task.
ProtocolError cancelled_task_error();
/// A random handle that cannot be guessed.
std::string new_task_handle();

/// A call that continues after the reply to its request, and its outcome. Any thread may call. Nothing changes a task
/// that has ended.
class Task {
 public:
  using Status = TaskStatus;

  Task(std::string id, std::string owner, milliseconds ttl, std::shared_ptr<Interruption> call, Bulletin& bulletin,
       Clock::time_point now);

  [[nodiscard]] const std::string& id() const { return m_id; }
  [[nodiscard]] const std::string& owner() const { return m_owner; }
  [[nodiscard]] Status status() const;
  [[nodiscard]] bool expired(Clock::time_point now) const { return now >= m_expiry; }

  /// As it is now.
  [[nodiscard]] TaskState state() const;
  [[nodiscard]] json description() const { return state().to_json(); }
  [[nodiscard]] json handshake_description() const { return state().to_handshake_json(); }

  /// False if the task had ended before.
  bool complete(json result, bool tool_failed);
  void fail(const ProtocolError& error);
  /// Ends the task and interrupts its call.
  void cancel();

  /// Waits until the client has answered all requests. Fails if the call is interrupted first.
  Result<json> ask(const json& requests, const std::stop_token& stop);
  /// Accepts answers from the client. Names that were not asked for are ignored.
  void update(const json& responses);

  /// The state after the task has ended. nullopt if it still runs at the deadline.
  [[nodiscard]] std::optional<TaskState> wait(Deadline deadline, const std::stop_token& stop) const;

 private:
  /// Wakes the threads that wait, and returns a notice to publish after the lock is released.
  [[nodiscard]] Notice changed() REQUIRES(m_mutex);

  const std::string m_id;
  const std::string m_owner;
  const Clock::time_point m_expiry;
  const std::shared_ptr<Interruption> m_call;
  Bulletin& m_bulletin;

  mutable Mutex m_mutex;
  mutable std::condition_variable_any m_changed;
  TaskState m_state GUARDED_BY(m_mutex);
  json m_answers GUARDED_BY(m_mutex) = json::object();
};

/// The tasks of all owners. An ended task is kept for its time to live. Each owner has a limit.
class Tasks {
 public:
  explicit Tasks(Bulletin& bulletin) : m_bulletin(bulletin) {}

  /// `ttl`: the client's wish; the reply has the granted one. The id is derived from `handle`, unless a task has that
  /// id already. nullptr if this owner has too many running tasks.
  std::shared_ptr<Task> create(const std::string& owner, std::optional<milliseconds> ttl,
                               std::shared_ptr<Interruption> call, const std::string& handle, Clock::time_point now);
  /// nullptr if this owner has no such task.
  [[nodiscard]] std::shared_ptr<Task> find(const std::string& owner, const std::string& id) const;
  /// Newest first.
  [[nodiscard]] std::vector<std::shared_ptr<Task>> list(const std::string& owner) const;

 private:
  void forget_old(const std::string& owner, Clock::time_point now) REQUIRES(m_mutex);

  Bulletin& m_bulletin;
  mutable Mutex m_mutex;
  std::list<std::shared_ptr<Task>> m_tasks GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp
