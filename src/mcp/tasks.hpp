#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "mcp/bulletin.hpp"
#include "mcp/interruption.hpp"
#include "mcp/message.hpp"
#include "mcp/tool.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp {

/// A call that goes on after its request was answered, and what has become of it. Any thread may use it. An end stays:
/// what comes after it changes nothing.
class Task {
 public:
  enum class Status { working, input_required, completed, failed, cancelled };

  Task(std::string id, std::string owner, milliseconds ttl, std::shared_ptr<Interruption> call, Bulletin& bulletin);

  [[nodiscard]] const std::string& id() const { return m_id; }
  [[nodiscard]] const std::string& owner() const { return m_owner; }
  [[nodiscard]] Status status() const;
  [[nodiscard]] bool expired() const { return Clock::now() >= m_expiry; }

  /// As it is now: id, status, times, and what 2026's tasks/get adds (result, error or input requests).
  [[nodiscard]] json description() const;
  /// The same as 2025-11-25 has it, without the result.
  [[nodiscard]] json handshake_description() const;

  void complete(json result, bool tool_failed);
  void fail(const ProtocolError& error);
  /// Tells the call to end what it does.
  void cancel();

  /// Waits until the client has answered all of these; an error if the call is interrupted meanwhile.
  Result<json> ask(const json& requests, const std::stop_token& stop);
  /// Answers from the client; names that were not asked for are ignored.
  void update(const json& responses);

  struct End {
    std::optional<json> result;  ///< else it failed or was cancelled
    ProtocolError error;
  };
  /// The end; none if it has not come by then.
  [[nodiscard]] std::optional<End> wait(Deadline deadline, const std::stop_token& stop) const;

 private:
  bool ended() const;
  void changed(std::unique_lock<std::mutex>& lock);
  json describe() const;
  json describe_handshake() const;

  const std::string m_id;
  const std::string m_owner;
  const milliseconds m_ttl;
  const std::int64_t m_created;
  const Clock::time_point m_expiry;
  const std::shared_ptr<Interruption> m_call;
  Bulletin& m_bulletin;

  mutable std::mutex m_mutex;  // guards everything below
  mutable std::condition_variable_any m_changed;
  Status m_status = Status::working;
  bool m_tool_failed = false;
  std::int64_t m_updated;
  json m_result;
  ProtocolError m_error;
  json m_asked = json::object();
  json m_answers = json::object();
};

/// The tasks of all owners. What has ended is kept for its time to live, and at most so many of each owner.
class Tasks {
 public:
  explicit Tasks(Bulletin& bulletin) : m_bulletin(bulletin) {}

  /// `ttl`: what the client wishes, if it does; the answer tells what it gets. None if this owner has too many that
  /// run.
  std::shared_ptr<Task> create(const std::string& owner, std::optional<milliseconds> ttl,
                               std::shared_ptr<Interruption> call);
  /// None if this owner has no such task.
  [[nodiscard]] std::shared_ptr<Task> find(const std::string& owner, const std::string& id) const;
  /// Newest first.
  [[nodiscard]] std::vector<std::shared_ptr<Task>> list(const std::string& owner) const;

 private:
  void forget_old(const std::string& owner);

  Bulletin& m_bulletin;
  mutable std::mutex m_mutex;  // guards the list
  std::list<std::shared_ptr<Task>> m_tasks;
};

}  // namespace dockbridge::mcp
