#pragma once

#include <condition_variable>
#include <list>
#include <map>
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

/// What a client is told of a task.
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
  /// Id, status, times, and what 2026's tasks/get adds (result, error or input requests).
  [[nodiscard]] json to_json() const;
  /// The same as 2025-11-25 has it, without the result.
  [[nodiscard]] json to_handshake_json() const;
};

inline constexpr milliseconds k_usual_task_ttl{3'600'000};
inline constexpr std::size_t k_max_tasks_per_owner = 200;

/// The id of the task of a call with this handle, and back. No handle for what is not such an id.
std::string task_id_of(const std::string& handle);
std::optional<std::string> handle_of_task(const std::string& id);
/// What tasks/result answers for a cancelled task.
ProtocolError cancelled_task_error();
/// A handle that nobody can guess.
std::string new_task_handle();

/// A call that goes on after its request was answered, and what has become of it. Any thread may use it. An end stays:
/// what comes after it changes nothing.
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

  /// False if it had ended before.
  bool complete(json result, bool tool_failed);
  void fail(const ProtocolError& error);
  /// Tells the call to end what it does.
  void cancel();

  /// Waits until the client has answered all of these; an error if the call is interrupted meanwhile.
  Result<json> ask(const json& requests, const std::stop_token& stop);
  /// Answers from the client; names that were not asked for are ignored.
  void update(const json& responses);

  /// Its state when it has ended; none if that has not come by then.
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

/// The tasks of all owners. What has ended is kept for its time to live, and at most so many of each owner.
class Tasks {
 public:
  explicit Tasks(Bulletin& bulletin) : m_bulletin(bulletin) {}

  /// `ttl`: what the client wishes, if it does; the answer tells what it gets. The id is made of `handle`, unless a
  /// task has that already. None if this owner has too many that run.
  std::shared_ptr<Task> create(const std::string& owner, std::optional<milliseconds> ttl,
                               std::shared_ptr<Interruption> call, const std::string& handle, Clock::time_point now);
  /// None if this owner has no such task.
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
