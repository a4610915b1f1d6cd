#include "sandbox/outgoing_queue.hpp"

#include <algorithm>
#include <utility>

namespace dockbridge::sandbox {

namespace {

constexpr std::size_t k_max_batch_bytes = 16 * 1024;

}  // namespace

void OutgoingQueue::push(std::uint64_t id, std::string bytes) {
  m_bytes += bytes.size();
  m_frames.push_back({id, false, std::move(bytes)});
}

void OutgoingQueue::push_cancellation(std::uint64_t id, std::string bytes) {
  m_bytes += bytes.size();
  m_frames.push_front({id, true, std::move(bytes)});
}

bool OutgoingQueue::remove(std::uint64_t id) {
  const auto found = std::find_if(m_frames.begin(), m_frames.end(), [&](const Frame& it) { return it.id == id; });
  if (found == m_frames.end()) {
    return false;
  }
  m_bytes -= found->bytes.size();
  m_frames.erase(found);
  return true;
}

void OutgoingQueue::move_to(std::string& writing, std::size_t written) {
  const auto fits = [&](const Frame& next) {
    return writing.empty() || next.is_cancellation ||
           (written == 0 && writing.size() + next.bytes.size() <= k_max_batch_bytes);
  };
  while (!m_frames.empty() && fits(m_frames.front())) {
    std::string bytes = std::move(m_frames.front().bytes);
    m_frames.pop_front();
    m_bytes -= bytes.size();
    writing.empty() ? writing.swap(bytes) : static_cast<void>(writing.append(bytes));
  }
}

}  // namespace dockbridge::sandbox
