#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/keeper/control.hpp"
#include "util/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// The code of the error that means there is no keeper; any other means that it could not be reached just now.
inline constexpr std::string_view k_keeper_gone = "keeper_gone";

/// A session's connection to a keeper. Sends orders; what comes back is read by the caller from `fd()`.
class KeeperLink {
 public:
  /// To the keeper that listens in a process's folder; k_keeper_gone if there is none any more.
  static Result<KeeperLink> connect(int directory_fd);
  /// From the session's end of the socket pair that a new keeper was forked with.
  explicit KeeperLink(Fd socket) : m_socket(std::move(socket)) {}

  [[nodiscard]] int fd() const { return m_socket.get(); }
  Received receive(ControlPacket& packet);

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
