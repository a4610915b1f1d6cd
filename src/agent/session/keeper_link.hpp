#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/control/packets.hpp"
#include "agent/keeper/assignment.hpp"
#include "agent/record.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// A session's connection to a keeper. Sends orders; what comes back is read by the caller from `fd()`.
class KeeperLink {
 public:
  /// To the keeper of a process, none if that is gone; error `keeper_busy` if it cannot be told just now. One that has
  /// another process by then hangs up.
  static Result<std::optional<KeeperLink>> find(int directory_fd, const std::string& process, const Record& record,
                                                const Moment& now);
  /// Whether there is a keeper of that name, or may be.
  static bool is_listening(int directory_fd, const std::string& keeper);
  /// From the session's end of the socket pair that a new keeper was started with, which is of this version.
  explicit KeeperLink(Fd socket, std::uint8_t version = k_control_version)
      : m_socket(std::move(socket)), m_version(version) {}

  [[nodiscard]] int fd() const { return m_socket.get(); }
  Received receive(ControlPacket& packet);

  Result<void> assign(const Assignment& assignment);
  // What cannot be sent is the error `process_ended` if the keeper is gone, `keeper_busy` if it does not read.
  /// With `heed_starvation` the keeper goes on counting how long the process had no CPU to run on.
  Result<void> query(bool heed_starvation = false);
  /// Asks to be told, once, when there is more output. A change of phase is always told.
  Result<void> watch_growth();
  /// `how`: k_then_end, k_as_paste.
  Result<void> input(std::string_view bytes, std::uint32_t how);
  Result<void> signal(int number);
  Result<void> end_tree(wire::Cause cause, std::uint32_t grace_ms);

  /// Asks to store no more than so much output from now on. One of an older version hangs up.
  Result<void> trim(std::uint32_t bytes);

  // These are the error `keeper_too_old` if the keeper was started by a version that did not have them.
  /// Asks to be told, once, of k_watch_input or k_watch_answer; 0: of neither.
  Result<void> watch_input(std::uint32_t wanted);
  Result<void> keys(std::string_view names);
  Result<void> screen();
  Result<void> resize(wire::TerminalSize size);
  /// Input, keys or a signal, as `step` says, with the value and payload of that order.
  Result<void> once(const OnceHeader& step, std::uint32_t value, std::string_view payload);

 private:
  Result<void> send(Order order, std::uint32_t value, std::string_view payload = {});
  Result<void> send_new(std::uint8_t since, Order order, std::uint32_t value, std::string_view payload = {});

  Fd m_socket;
  std::uint8_t m_version;  // of the keeper, as far as it has said so
};

}  // namespace dockbridge::agent
