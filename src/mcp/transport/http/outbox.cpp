#include "mcp/transport/http/outbox.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr std::size_t k_max_messages = 512;
constexpr std::size_t k_max_bytes = 4 * 1024 * 1024;

}  // namespace

void Outbox::put(std::string text, bool droppable) {
  const bool full = m_messages.size() >= k_max_messages || m_bytes + text.size() > k_max_bytes;
  while (full && !m_messages.empty() && m_messages.front().number <= m_taken &&
         (m_messages.size() >= k_max_messages || m_bytes + text.size() > k_max_bytes)) {
    m_bytes -= m_messages.front().text.size();  // was kept for a resuming client
    m_messages.pop_front();
  }
  if (droppable && (m_messages.size() >= k_max_messages || m_bytes + text.size() > k_max_bytes)) {
    return;
  }
  m_bytes += text.size();
  m_messages.push_back({++m_last, std::move(text)});
}

void Outbox::wake() {
  if (m_taker) {
    m_taker->wake();
  }
}

void Outbox::answer(json message, Delivered delivered) {
  const MutexLock lock(m_mutex);
  m_done = true;
  if (m_abandoned) {
    return;
  }
  m_delivered = std::move(delivered);
  if (m_last == 0) {
    m_sole = std::move(message);
  } else {
    put(dump(message), false);
  }
  wake();
}

void Outbox::end_without_reply() {
  const MutexLock lock(m_mutex);
  m_done = true;
  wake();
}

void Outbox::send(const json& message) {
  std::string text = dump(message);
  const MutexLock lock(m_mutex);
  if (!m_done && !m_abandoned) {
    put(std::move(text), !message.contains("id"));
    wake();
  }
}

void Outbox::hang_up() {
  const MutexLock lock(m_mutex);
  if (!m_name.empty()) {
    m_hung_up = true;
    wake();
  }
}

void Outbox::abandon() {
  Delivered dropped;  // after the lock is released: its end is a notice to others
  const MutexLock lock(m_mutex);
  m_abandoned = true;
  dropped = std::exchange(m_delivered, nullptr);
  m_sole.reset();
  m_messages.clear();
  m_bytes = 0;
  m_taken = m_last;
}

std::uint64_t Outbox::attach(std::shared_ptr<Wakeup> taker, std::optional<std::uint64_t> after) {
  const MutexLock lock(m_mutex);
  wake();
  m_taker = std::move(taker);
  m_taken = after ? std::min(*after, m_last) : m_taken;
  m_hung_up = m_hung_up && !after;
  return ++m_ticket;
}

Outbox::Taken Outbox::take(std::uint64_t ticket) {
  const MutexLock lock(m_mutex);
  Taken taken;
  if (ticket != m_ticket) {
    taken.ended = true;
    return taken;
  }
  if (m_sole) {
    put(dump(*m_sole), false);
    m_sole.reset();
  }
  for (const Kept& kept : m_messages) {
    if (kept.number > m_taken) {
      taken.messages.emplace_back(kept.number, kept.text);
    }
  }
  m_taken = m_last;
  if (m_name.empty()) {
    m_messages.clear();
    m_bytes = 0;
  }
  taken.ended = m_done || m_hung_up;
  return taken;
}

bool Outbox::finished() const {
  const MutexLock lock(m_mutex);
  return m_done && !m_sole && m_taken == m_last;
}

std::optional<json> Outbox::take_sole_answer() {
  const MutexLock lock(m_mutex);
  return std::exchange(m_sole, std::nullopt);
}

Delivered Outbox::take_delivered() {
  const MutexLock lock(m_mutex);
  return std::exchange(m_delivered, nullptr);
}

bool Outbox::empty() const {
  const MutexLock lock(m_mutex);
  return !m_sole && m_last == 0 && !m_done && !m_hung_up;
}

bool Outbox::hung_up() const {
  const MutexLock lock(m_mutex);
  return m_hung_up;
}

}  // namespace dockbridge::mcp::http
