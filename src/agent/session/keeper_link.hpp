#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/keeper/assignment.hpp"
#include "agent/keeper/control.hpp"
#include "util/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// A session's connection to a keeper. Sends orders; what comes back is read by the caller from `fd()`.
class KeeperLink {
 public:
  /// To the keeper of a process; k_keeper_gone if it is no more. One that has another process by now hangs up.
  static Result<KeeperLink> connect(int directory_fd, const std::string& keeper, const std::string& process);
  /// Whether there is a keeper of that name, or may be.
  static bool is_listening(int directory_fd, const std::string& keeper);
  /// From the session's end of the socket pair that a new keeper was started with.
  explicit KeeperLink(Fd socket) : m_socket(std::move(socket)) {}

  [[nodiscard]] int fd() const { return m_socket.get(); }
  Received receive(ControlPacket& packet);

  Result<void> assign(const Assignment& assignment);
  bool query();
  /// Asks to be told, once, when there is more output. A change of phase is always told.
  bool watch_growth();
  bool input(std::string_view bytes, bool then_end);
  bool signal(int number);
  bool end_tree(wire::Cause cause, std::uint32_t grace_ms);

 private:
  bool send(Order order, std::uint32_t value, std::string_view payload = {});

  Fd m_socket;
};

}  // namespace dockbridge::agent
