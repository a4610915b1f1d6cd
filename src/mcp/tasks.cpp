#include "mcp/tasks.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "util/encoding.hpp"
#include "util/random.hpp"

namespace dockbridge::mcp {

namespace {

constexpr milliseconds k_usual_ttl{3'600'000};
constexpr milliseconds k_longest_ttl{24 * 3'600'000};
constexpr int k_poll_interval_ms = 1000;
constexpr std::size_t k_max_tasks_per_owner = 200;
constexpr std::size_t k_id_bytes = 16;

std::string iso_time(std::int64_t unix_ms) {
  const std::time_t whole = static_cast<std::time_t>(unix_ms / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(whole), unix_ms % 1000);
}

const char* name_of(Task::Status status) {
  constexpr std::array<const char*, 5> k_names = {"working", "input_required", "completed", "failed", "cancelled"};
  return k_names.at(static_cast<std::size_t>(status));
}

}  // namespace

Task::Task(std::string id, std::string owner, milliseconds ttl, std::shared_ptr<Interruption> call, Bulletin& bulletin)
    : m_id(std::move(id)),
      m_owner(std::move(owner)),
      m_ttl(ttl),
      m_created(unix_milliseconds_now()),
      m_expiry(Clock::now() + ttl),
      m_call(std::move(call)),
      m_bulletin(bulletin),
      m_updated(m_created) {}

Task::Status Task::status() const {
  const std::lock_guard lock(m_mutex);
  return m_status;
}

bool Task::ended() const {
  return m_status != Status::working && m_status != Status::input_required;
}

json Task::describe() const {
  json task = {{"taskId", m_id},
               {"status", name_of(m_status)},
               {"createdAt", iso_time(m_created)},
               {"lastUpdatedAt", iso_time(m_updated)},
               {"ttlMs", m_ttl.count()},
               {"pollIntervalMs", k_poll_interval_ms}};
  switch (m_status) {
    case Status::working:
    case Status::cancelled:
      break;
    case Status::input_required:
      task["inputRequests"] = m_asked;
      break;
    case Status::completed:
      task["result"] = m_result;
      break;
    case Status::failed:
      task["error"] = {{"code", m_error.code}, {"message", m_error.message}};
      break;
  }
  return task;
}

json Task::describe_handshake() const {
  const bool failed = m_status == Status::failed || (m_status == Status::completed && m_tool_failed);
  return {{"taskId", m_id},
          {"status", failed ? "failed" : name_of(m_status)},
          {"createdAt", iso_time(m_created)},
          {"lastUpdatedAt", iso_time(m_updated)},
          {"ttl", m_ttl.count()},
          {"pollInterval", k_poll_interval_ms}};
}

json Task::description() const {
  const std::lock_guard lock(m_mutex);
  return describe();
}

json Task::handshake_description() const {
  const std::lock_guard lock(m_mutex);
  return describe_handshake();
}

/// Tells those who wait and those who listen; the latter without the lock.
void Task::changed(std::unique_lock<std::mutex>& lock) {
  m_updated = unix_milliseconds_now();
  m_changed.notify_all();
  Notice notice{Notice::Kind::task_changed, m_id, m_owner, describe(), describe_handshake()};
  lock.unlock();
  m_bulletin.publish(notice);
}

void Task::complete(json result, bool tool_failed) {
  std::unique_lock lock(m_mutex);
  if (!ended()) {
    m_status = Status::completed;
    m_tool_failed = tool_failed;
    m_result = std::move(result);
    changed(lock);
  }
}

void Task::fail(const ProtocolError& error) {
  std::unique_lock lock(m_mutex);
  if (!ended()) {
    m_status = Status::failed;
    m_error = error;
    changed(lock);
  }
}

void Task::cancel() {
  std::unique_lock lock(m_mutex);
  if (!ended()) {
    m_status = Status::cancelled;
    m_error = {k_invalid_request, "the task was cancelled", nullptr};
    changed(lock);
    m_call->interrupt(StopReason::cancelled);
  }
}

Result<json> Task::ask(const json& requests, const std::stop_token& stop) {
  std::unique_lock lock(m_mutex);
  if (ended()) {
    return ::dockbridge::fail("interrupted", "the client did not answer before the task ended");
  }
  m_asked = requests;
  m_answers = json::object();
  m_status = Status::input_required;
  changed(lock);
  lock.lock();
  m_changed.wait(lock, stop, [&] { return m_status != Status::input_required; });
  if (m_status != Status::working) {
    return ::dockbridge::fail("interrupted", "the client did not answer before the task ended");
  }
  return std::move(m_answers);
}

void Task::update(const json& responses) {
  std::unique_lock lock(m_mutex);
  if (m_status != Status::input_required) {
    return;
  }
  for (const auto& [name, response] : responses.items()) {
    if (m_asked.erase(name) > 0) {
      m_answers[name] = response;
    }
  }
  if (m_asked.empty()) {
    m_status = Status::working;
  }
  changed(lock);
}

std::optional<Task::End> Task::wait(Deadline deadline, const std::stop_token& stop) const {
  std::unique_lock lock(m_mutex);
  if (!m_changed.wait_until(lock, stop, deadline.time(), [&] { return ended(); })) {
    return std::nullopt;
  }
  return m_status == Status::completed ? End{m_result, {}} : End{std::nullopt, m_error};
}

std::shared_ptr<Task> Tasks::create(const std::string& owner, std::optional<milliseconds> ttl,
                                    std::shared_ptr<Interruption> call) {
  const std::lock_guard lock(m_mutex);
  forget_old(owner);
  const auto running =
      std::count_if(m_tasks.begin(), m_tasks.end(), [&](const auto& task) { return task->owner() == owner; });
  if (static_cast<std::size_t>(running) >= k_max_tasks_per_owner) {
    return nullptr;
  }
  const milliseconds granted = std::clamp(ttl.value_or(k_usual_ttl), milliseconds(1000), k_longest_ttl);
  m_tasks.push_front(
      std::make_shared<Task>("task_" + to_hex(random_bytes(k_id_bytes)), owner, granted, std::move(call), m_bulletin));
  return m_tasks.front();
}

/// Drops what is past its time, and of the rest the oldest that has ended if this owner has no room left.
void Tasks::forget_old(const std::string& owner) {
  const auto over = [](const std::shared_ptr<Task>& task) {
    return task->status() != Task::Status::working && task->status() != Task::Status::input_required;
  };
  m_tasks.remove_if([&](const auto& task) { return task->expired() && over(task); });
  const auto own =
      std::count_if(m_tasks.begin(), m_tasks.end(), [&](const auto& task) { return task->owner() == owner; });
  if (static_cast<std::size_t>(own) < k_max_tasks_per_owner) {
    return;
  }
  const auto oldest = std::find_if(m_tasks.rbegin(), m_tasks.rend(),
                                   [&](const auto& task) { return task->owner() == owner && over(task); });
  if (oldest != m_tasks.rend()) {
    m_tasks.erase(std::next(oldest).base());
  }
}

std::shared_ptr<Task> Tasks::find(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(m_mutex);
  const auto found = std::find_if(m_tasks.begin(), m_tasks.end(),
                                  [&](const auto& task) { return task->id() == id && task->owner() == owner; });
  return found == m_tasks.end() ? nullptr : *found;
}

std::vector<std::shared_ptr<Task>> Tasks::list(const std::string& owner) const {
  const std::lock_guard lock(m_mutex);
  std::vector<std::shared_ptr<Task>> own;
  std::copy_if(m_tasks.begin(), m_tasks.end(), std::back_inserter(own),
               [&](const auto& task) { return task->owner() == owner; });
  return own;
}

}  // namespace dockbridge::mcp
