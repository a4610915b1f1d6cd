#pragma once

#include <doctest/doctest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mcp/tool.hpp"
#include "util/clock.hpp"

namespace dockbridge::mcp::test {

inline constexpr seconds k_patience{20};

/// The messages that the client receives, in order.
class Inbox {
 public:
  /// Always true, because this client stays connected.
  bool put(const json& message) {
    const std::lock_guard lock(m_mutex);
    m_messages.push_back(json::parse(dump(message)));
    m_changed.notify_all();
    return true;
  }
  /// The next message. Fails the test if none arrives.
  json next() {
    std::unique_lock lock(m_mutex);
    REQUIRE(m_changed.wait_for(lock, k_patience, [&] { return !m_messages.empty(); }));
    json message = std::move(m_messages.front());
    m_messages.pop_front();
    return message;
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<json> m_messages;
};

/// Calls that wait until the test releases them or their client interrupts them.
class Gate {
 public:
  StopReason pass(const CallContext& context) {
    std::unique_lock lock(m_mutex);
    ++m_arrived;
    m_changed.notify_all();
    m_changed.wait(lock, context.interruption.token(), [&] { return m_open; });
    m_reasons.push_back(context.interruption.reason());
    m_changed.notify_all();
    return m_reasons.back();
  }
  void open() {
    const std::lock_guard lock(m_mutex);
    m_open = true;
    m_changed.notify_all();
  }
  int arrived() {
    const std::lock_guard lock(m_mutex);
    return m_arrived;
  }
  void wait_for_arrivals(int count) {
    std::unique_lock lock(m_mutex);
    REQUIRE(m_changed.wait_for(lock, k_patience, [&] { return m_arrived >= count; }));
  }
  /// Waits for a call to end. Returns the reason why it was stopped.
  StopReason wait_for_end() {
    std::unique_lock lock(m_mutex);
    REQUIRE(m_changed.wait_for(lock, k_patience, [&] { return !m_reasons.empty(); }));
    return m_reasons.back();
  }

 private:
  std::mutex m_mutex;
  std::condition_variable_any m_changed;
  bool m_open = false;
  int m_arrived = 0;
  std::vector<StopReason> m_reasons;
};

/// Counts the results that were delivered to their client.
class Deliveries {
 public:
  /// For ToolResult::on_delivered. Its destruction counts as the end of the attempt.
  std::function<void()> expect() {
    change(m_expected);
    const std::shared_ptr<void> attempt(nullptr, [this](void*) { change(m_settled); });
    return [this, attempt] { change(m_delivered); };
  }
  /// The number of calls made, after every attempt has been delivered or dropped.
  int settled() {
    std::unique_lock lock(m_mutex);
    REQUIRE(m_changed.wait_for(lock, k_patience, [&] { return m_expected > 0 && m_settled == m_expected; }));
    return m_delivered;
  }
  int so_far() {
    const std::lock_guard lock(m_mutex);
    return m_delivered;
  }

 private:
  void change(int& number) {
    const std::lock_guard lock(m_mutex);
    ++number;
    m_changed.notify_all();
  }
  std::mutex m_mutex;
  std::condition_variable m_changed;
  int m_expected = 0;
  int m_settled = 0;
  int m_delivered = 0;
};

inline Tool tool(const std::string& name, std::function<ToolResult(const json&, const CallContext&)> call,
                 TaskSupport support = TaskSupport::forbidden) {
  Tool made;
  made.name = name;
  made.input_schema = {{"type", "object"}};
  made.output_schema = {{"type", "object"}};
  made.call = std::move(call);
  made.task_support = support;
  return made;
}

}  // namespace dockbridge::mcp::test
