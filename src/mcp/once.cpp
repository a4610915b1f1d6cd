#include "mcp/once.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_max_attempts = 1000;
constexpr milliseconds k_lifetime{3'600'000};

}  // namespace

Once::Entered Once::enter(const std::string& owner, const std::string& key, const std::string& what) {
  const std::lock_guard lock(m_mutex);
  while (!m_order.empty() && (m_order.size() >= k_max_attempts || m_order.front().first + k_lifetime < Clock::now())) {
    m_attempts.erase(m_order.front().second);
    m_order.pop_front();
  }
  const Key whole{owner, key};
  std::shared_ptr<Attempt>& attempt = m_attempts[whole];
  if (attempt) {
    const std::lock_guard attempt_lock(attempt->m_mutex);
    if (!attempt->m_given_up) {
      return {attempt, false, attempt->m_what != what};
    }
  } else {
    m_order.emplace_back(Clock::now(), whole);
  }
  attempt = std::make_shared<Attempt>(what);
  return {attempt, true, false};
}

void Once::Attempt::finish(const ToolResult& result) {
  const std::lock_guard lock(m_mutex);
  m_result = result;
  m_changed.notify_all();
}

void Once::Attempt::give_up() {
  const std::lock_guard lock(m_mutex);
  m_given_up = true;
  m_changed.notify_all();
}

std::optional<ToolResult> Once::Attempt::wait(const std::stop_token& stop) {
  std::unique_lock lock(m_mutex);
  m_changed.wait(lock, stop, [&] { return m_result || m_given_up; });
  return m_result;
}

}  // namespace dockbridge::mcp
