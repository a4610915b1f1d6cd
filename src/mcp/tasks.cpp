#include "mcp/tasks.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "util/encoding.hpp"
#include "util/random.hpp"

namespace dockbridge::mcp {

namespace {

constexpr milliseconds k_max_ttl{24 * 3'600'000};
constexpr int k_poll_interval_ms = 1000;
constexpr std::string_view k_id_prefix = "task_";
constexpr std::size_t k_handle_bytes = 16;

std::string iso_time(std::int64_t unix_ms) {
  const std::time_t whole = static_cast<std::time_t>(unix_ms / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(whole), unix_ms % 1000);
}

const char* name_of(TaskStatus status) {
  constexpr std::array<const char*, 5> k_names = {"working", "input_required", "completed", "failed", "cancelled"};
  return k_names.at(static_cast<std::size_t>(status));
}

}  // namespace

std::string task_id_of(const std::string& handle) {
  return std::string(k_id_prefix) + handle;
}

std::optional<std::string> handle_of_task(const std::string& id) {
  const std::string handle = id.starts_with(k_id_prefix) ? id.substr(k_id_prefix.size()) : "";
  const bool hexadecimal = handle.find_first_not_of("0123456789abcdef") == std::string::npos;
  return handle.size() == 2 * k_handle_bytes && hexadecimal ? std::optional(handle) : std::nullopt;
}

std::string new_task_handle() {
  return to_hex(random_bytes(k_handle_bytes));
}

ProtocolError cancelled_task_error() {
  return {k_invalid_request, "The task was cancelled", nullptr};
}

json TaskState::to_json() const {
  json task = {{"taskId", id},
               {"status", name_of(status)},
               {"createdAt", iso_time(created_ms)},
               {"lastUpdatedAt", iso_time(updated_ms)},
               {"ttlMs", ttl.count()},
               {"pollIntervalMs", k_poll_interval_ms}};
  switch (status) {
    case TaskStatus::working:
    case TaskStatus::cancelled:
      break;
    case TaskStatus::input_required:
      task["inputRequests"] = asked;
      break;
    case TaskStatus::completed:
      task["result"] = result;
      break;
    case TaskStatus::failed:
      task["error"] = {{"code", error.code}, {"message", error.message}};
      break;
  }
  return task;
}

json TaskState::to_handshake_json() const {
  const bool failed = status == TaskStatus::failed || (status == TaskStatus::completed && tool_failed);
  return {{"taskId", id},
          {"status", failed ? "failed" : name_of(status)},
          {"createdAt", iso_time(created_ms)},
          {"lastUpdatedAt", iso_time(updated_ms)},
          {"ttl", ttl.count()},
          {"pollInterval", k_poll_interval_ms}};
}

Task::Task(std::string id, std::string owner, milliseconds ttl, std::shared_ptr<Interruption> call, Bulletin& bulletin,
           Clock::time_point now)
    : m_id(std::move(id)),
      m_owner(std::move(owner)),
      m_expiry(now + ttl),
      m_call(std::move(call)),
      m_bulletin(bulletin) {
  m_state.id = m_id;
  m_state.ttl = ttl;
  m_state.created_ms = unix_milliseconds_now();
  m_state.updated_ms = m_state.created_ms;
}

Task::Status Task::status() const {
  const MutexLock lock(m_mutex);
  return m_state.status;
}

TaskState Task::state() const {
  const MutexLock lock(m_mutex);
  return m_state;
}

Notice Task::changed() {
  m_state.updated_ms = unix_milliseconds_now();
  m_changed.notify_all();
  return {Notice::Kind::task_changed, m_id, m_owner, m_state.to_json(), m_state.to_handshake_json()};
}

bool Task::complete(json result, bool tool_failed) {
  MutexLock lock(m_mutex);
  if (m_state.ended()) {
    return false;
  }
  m_state.status = Status::completed;
  m_state.tool_failed = tool_failed;
  m_state.result = std::move(result);
  const Notice notice = changed();
  lock.unlock();
  m_bulletin.publish(notice);
  return true;
}

void Task::fail(const ProtocolError& error) {
  MutexLock lock(m_mutex);
  if (!m_state.ended()) {
    m_state.status = Status::failed;
    m_state.error = error;
    const Notice notice = changed();
    lock.unlock();
    m_bulletin.publish(notice);
  }
}

void Task::cancel() {
  MutexLock lock(m_mutex);
  if (!m_state.ended()) {
    m_state.status = Status::cancelled;
    m_state.error = cancelled_task_error();
    const Notice notice = changed();
    lock.unlock();
    m_bulletin.publish(notice);
    m_call->interrupt(StopReason::cancelled);
  }
}

Result<json> Task::ask(const json& requests, const std::stop_token& stop) {
  MutexLock lock(m_mutex);
  if (m_state.ended()) {
    return ::dockbridge::fail(ErrorCode::interrupted, "The client did not answer before the task ended");
  }
  m_state.asked = requests;
  m_answers = json::object();
  m_state.status = Status::input_required;
  const Notice notice = changed();
  lock.unlock();
  m_bulletin.publish(notice);
  lock.lock();
  m_changed.wait(lock, stop, [&]() REQUIRES(m_mutex) { return m_state.status != Status::input_required; });
  if (m_state.status != Status::working) {
    return ::dockbridge::fail(ErrorCode::interrupted, "The client did not answer before the task ended");
  }
  return std::move(m_answers);
}

void Task::update(const json& responses) {
  MutexLock lock(m_mutex);
  if (m_state.status != Status::input_required) {
    return;
  }
  for (const auto& [name, response] : responses.items()) {
    if (m_state.asked.erase(name) > 0) {
      m_answers[name] = response;
    }
  }
  if (m_state.asked.empty()) {
    m_state.status = Status::working;
  }
  const Notice notice = changed();
  lock.unlock();
  m_bulletin.publish(notice);
}

std::optional<TaskState> Task::wait(Deadline deadline, const std::stop_token& stop) const {
  MutexLock lock(m_mutex);
  if (!m_changed.wait_until(lock, stop, deadline.time(), [&]() REQUIRES(m_mutex) { return m_state.ended(); })) {
    return std::nullopt;
  }
  return m_state;
}

std::shared_ptr<Task> Tasks::create(const std::string& owner, std::optional<milliseconds> ttl,
                                    std::shared_ptr<Interruption> call, const std::string& handle,
                                    Clock::time_point now) {
  const MutexLock lock(m_mutex);
  forget_old(owner, now);
  const auto running =
      std::count_if(m_tasks.begin(), m_tasks.end(), [&](const auto& task) { return task->owner() == owner; });
  if (static_cast<std::size_t>(running) >= k_max_tasks_per_owner) {
    return nullptr;
  }
  const milliseconds granted = std::clamp(ttl.value_or(k_default_task_ttl), milliseconds(1000), k_max_ttl);
  const std::string id = task_id_of(handle);
  const bool taken = std::any_of(m_tasks.begin(), m_tasks.end(), [&](const auto& task) { return task->id() == id; });
  m_tasks.push_front(std::make_shared<Task>(taken ? task_id_of(new_task_handle()) : id, owner, granted, std::move(call),
                                            m_bulletin, now));
  return m_tasks.front();
}

/// Drops expired tasks, and the oldest ended task of this owner if the owner is at the limit.
void Tasks::forget_old(const std::string& owner, Clock::time_point now) {
  const auto over = [](const std::shared_ptr<Task>& task) {
    return task->status() != Task::Status::working && task->status() != Task::Status::input_required;
  };
  m_tasks.remove_if([&](const auto& task) { return task->expired(now) && over(task); });
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
  const MutexLock lock(m_mutex);
  const auto found = std::find_if(m_tasks.begin(), m_tasks.end(),
                                  [&](const auto& task) { return task->id() == id && task->owner() == owner; });
  return found == m_tasks.end() ? nullptr : *found;
}

std::vector<std::shared_ptr<Task>> Tasks::list(const std::string& owner) const {
  const MutexLock lock(m_mutex);
  std::vector<std::shared_ptr<Task>> own;
  std::copy_if(m_tasks.begin(), m_tasks.end(), std::back_inserter(own),
               [&](const auto& task) { return task->owner() == owner; });
  return own;
}

}  // namespace dockbridge::mcp
