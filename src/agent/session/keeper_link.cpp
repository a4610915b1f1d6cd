#include "agent/session/keeper_link.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "agent/control/screen_packets.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/socket_address.hpp"

namespace dockbridge::agent {

namespace {

/// Time from the first line of a process in the journal to the line of its keeper.
constexpr milliseconds k_start_span{5000};

constexpr std::uint8_t k_first_with_side_channel = 6;
constexpr std::uint8_t k_first_with_memory_cause = 7;

Result<Fd> connect_to(int directory_fd, const std::string& keeper) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = socket_address(directory_fd, keeper);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (socket && (errno == ENOENT || errno == ECONNREFUSED)) {
      return fail(ErrorCode::keeper_gone, "The process has no keeper");
    }
    // The keeper may be alive: it is stopped or overloaded (EAGAIN), or this session is out of descriptors.
    return fail(ErrorCode::keeper_busy, errno_error("Cannot reach the keeper of the process").message);
  }
  return socket;
}

}  // namespace

Result<std::optional<KeeperLink>> KeeperLink::find(int directory_fd, const std::string& process, const Record& record,
                                                   const Moment& now) {
  if (!record.kept) {
    const milliseconds recorded = age(record.meta.started, now);
    return recorded.count() >= 0 && recorded < k_start_span ? fail(ErrorCode::keeper_busy, "The process is starting")
                                                            : Result<std::optional<KeeperLink>>(std::nullopt);
  }
  if (record.status && record.status->closed) {
    return std::nullopt;
  }
  auto socket = connect_to(directory_fd, record.kept->keeper);
  if (!socket) {
    return socket.error().code == ErrorCode::keeper_gone ? Result<std::optional<KeeperLink>>(std::nullopt)
                                                         : fail(socket.error());
  }
  KeeperLink link(std::move(*socket), record.kept->control);
  (void)link.send(Order::attach, 0, process);  // `receive` detects a keeper that is gone
  return std::optional(std::move(link));
}

bool KeeperLink::is_listening(int directory_fd, const std::string& keeper) {
  const auto socket = connect_to(directory_fd, keeper);
  return socket || socket.error().code != ErrorCode::keeper_gone;
}

Received KeeperLink::receive(ControlPacket& packet) {
  const Received received = receive_control(m_socket.get(), packet);
  if (received == Received::packet) {
    m_version = packet.header.version;
  }
  return received;
}

Result<void> KeeperLink::send(Order order, std::uint32_t value, std::string_view payload) {
  if (send_control(m_socket.get(), static_cast<std::uint8_t>(order), value, payload)) {
    return {};
  }
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
    return fail(ErrorCode::process_ended, "The process has ended");
  }
  return fail(ErrorCode::keeper_busy, "Too many requests wait for the process");
}

Result<void> KeeperLink::assign(const Assignment& assignment) {
  return send_assignment(m_socket.get(), assignment);
}

Result<void> KeeperLink::query(bool heed_starvation) {
  return send(Order::query, heed_starvation ? k_with_starvation : 0);
}

Result<void> KeeperLink::watch_growth() {
  return send(Order::watch_growth, 0);
}

Result<void> KeeperLink::input(std::string_view bytes, std::uint32_t how) {
  return send(Order::input, how, bytes);
}

Result<void> KeeperLink::send_new(std::uint8_t since, Order order, std::uint32_t value, std::string_view payload) {
  return m_version >= since
             ? send(order, value, payload)
             : fail(ErrorCode::keeper_too_old, "An older dockbridge started the process and does not support this");
}

Result<void> KeeperLink::watch_input(std::uint32_t wanted) {
  return send_new(2, Order::watch_input, wanted);
}

Result<void> KeeperLink::keys(std::string_view names) {
  return send_new(2, Order::keys, 0, names);
}

Result<void> KeeperLink::side(std::string_view bytes) {
  return send_new(k_first_with_side_channel, Order::side, 0, bytes);
}

Result<void> KeeperLink::screen() {
  return send_new(2, Order::screen, 0);
}

Result<void> KeeperLink::resize(wire::TerminalSize size) {
  return send_new(2, Order::resize, packed_size(size));
}

Result<void> KeeperLink::once(const OnceHeader& step, std::uint32_t value, std::string_view payload) {
  std::string whole(reinterpret_cast<const char*>(&step), sizeof step);
  const bool is_side = step.order == static_cast<std::uint8_t>(Order::side);
  return send_new(is_side ? k_first_with_side_channel : 4, Order::once, value, whole.append(payload));
}

Result<void> KeeperLink::signal(int number) {
  return send(Order::signal, static_cast<std::uint32_t>(number));
}

Result<void> KeeperLink::trim(std::uint32_t bytes) {
  return send(Order::trim, bytes);
}

Result<void> KeeperLink::end_tree(wire::Cause cause, std::uint32_t grace_ms) {
  const bool is_unknown = cause == wire::Cause::memory && m_version < k_first_with_memory_cause;
  const char byte = static_cast<char>(is_unknown ? wire::Cause::terminated : cause);
  return send(Order::end, grace_ms, {&byte, 1});
}

}  // namespace dockbridge::agent
