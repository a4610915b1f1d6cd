#include "mcp/bulletin.hpp"

namespace dockbridge::mcp {

Bulletin::Ticket Bulletin::subscribe(Listener listener) {
  const MutexLock lock(m_board->mutex);
  const std::uint64_t number = m_board->next++;
  m_board->listeners.emplace(number, std::move(listener));
  return {nullptr, [board = m_board, number](void*) {
            const MutexLock leaving(board->mutex);
            board->listeners.erase(number);
          }};
}

void Bulletin::publish(const Notice& notice) {
  const MutexLock lock(m_board->mutex);
  for (const auto& [number, listener] : m_board->listeners) {
    listener(notice);
  }
}

}  // namespace dockbridge::mcp
