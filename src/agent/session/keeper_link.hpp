#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/keeper/assignment.hpp"
#include "agent/keeper/control.hpp"
#include "agent/record.hpp"
#include "util/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// A session's connection to a keeper. Sends orders; what comes back is read by the caller from `fd()`.
class KeeperLink {
 public:
  /// To the keeper of a process, none if that is gone; error `keeper_busy` if it cannot be told just now. One that has
  /// another process by now hangs up.
  static Result<std::optional<KeeperLink>> find(int directory_fd, const std::string& process, const Record& record);
  /// Whether there is a keeper of that name, or may be.
  static bool is_listening(int directory_fd, const std::string& keeper);
  /// From the session's end of the socket pair that a new keeper was started with.
  explicit KeeperLink(Fd socket) : m_socket(std::move(socket)) {}

  [[nodiscard]] int fd() const { return m_socket.get(); }
  Received receive(ControlPacket& packet);

  Result<void> assign(const Assignment& assignment);
  // What cannot be sent is the error `process_ended` if the keeper is gone, `keeper_busy` if it does not read.
  Result<void> query();
  /// Asks to be told, once, when there is more output. A change of phase is always told.
  Result<void> watch_growth();
  /// Asks to be told, once, when the process waits for input.
  Result<void> watch_input();
  Result<void> input(std::string_view bytes, bool then_end);
  Result<void> keys(std::string_view names);
  Result<void> screen();
  Result<void> resize(wire::TerminalSize size);
  Result<void> signal(int number);
  Result<void> end_tree(wire::Cause cause, std::uint32_t grace_ms);

 private:
  Result<void> send(Order order, std::uint32_t value, std::string_view payload = {});

  Fd m_socket;
};

}  // namespace dockbridge::agent
