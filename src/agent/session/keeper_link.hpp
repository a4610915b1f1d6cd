#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/control/assignment.hpp"
#include "agent/control/packets.hpp"
#include "agent/record.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// A session's connection to a keeper. Sends orders. The caller polls `fd()` and receives the packets.
class KeeperLink {
 public:
  /// Connects to the keeper of a process. nullopt if the keeper is gone, error `keeper_busy` if that is uncertain. A
  /// keeper that got another process in the meantime closes the connection.
  static Result<std::optional<KeeperLink>> find(int directory_fd, const std::string& process, const Record& record,
                                                const Moment& now);
  /// Whether a keeper with this name exists or may exist.
  static bool is_listening(int directory_fd, const std::string& keeper);
  /// Takes the session's end of the socket pair of a keeper that was started with this version of the agent.
  explicit KeeperLink(Fd socket, std::uint8_t version = k_control_version)
      : m_socket(std::move(socket)), m_version(version) {}

  [[nodiscard]] int fd() const { return m_socket.get(); }
  Received receive(ControlPacket& packet);

  Result<void> assign(const Assignment& assignment);
  // These fail with `process_ended` if the keeper is gone, and with `keeper_busy` if it does not read.
  /// Requests the state. With `heed_starvation`, the keeper also measures how long the process had no CPU to run on.
  Result<void> query(bool heed_starvation = false);
  /// Requests one report when there is more output. A change of phase is always reported.
  Result<void> watch_growth();
  /// `how`: k_then_end, k_as_paste.
  Result<void> input(std::string_view bytes, std::uint32_t how);
  Result<void> signal(int number);
  Result<void> end_tree(wire::Cause cause, std::uint32_t grace_ms);

  /// Limits the output that is stored from now on. A keeper of an older version closes the connection.
  Result<void> trim(std::uint32_t bytes);

  // These fail with `keeper_too_old` if the keeper was started by a version that does not support them.
  /// Requests one report of each event in `wanted`: k_watch_input, k_watch_answer. 0 cancels the request.
  Result<void> watch_input(std::uint32_t wanted);
  Result<void> keys(std::string_view names);
  Result<void> side(std::string_view bytes);
  Result<void> screen();
  Result<void> resize(wire::TerminalSize size);
  /// Sends input, keys, a signal or bytes for the side channel, as `step` says, with the value and payload of that
  /// order.
  Result<void> once(const OnceHeader& step, std::uint32_t value, std::string_view payload);

 private:
  Result<void> send(Order order, std::uint32_t value, std::string_view payload = {});
  Result<void> send_new(std::uint8_t since, Order order, std::uint32_t value, std::string_view payload = {});

  Fd m_socket;
  std::uint8_t m_version;  ///< of the keeper, by its latest packet or its record
};

}  // namespace dockbridge::agent
