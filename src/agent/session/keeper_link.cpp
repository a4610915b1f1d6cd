#include "agent/session/keeper_link.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

Result<Fd> connect_to(int directory_fd, const std::string& keeper) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = socket_address(directory_fd, keeper);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (socket && (errno == ENOENT || errno == ECONNREFUSED)) {
      return fail(std::string(k_keeper_gone), "the process has no keeper any more");
    }
    // It may live all the same: it is stopped or overloaded (EAGAIN), or this session is out of descriptors.
    return fail("keeper_busy", errno_error("cannot reach the process's keeper").message, "Try again in a moment");
  }
  return socket;
}

}  // namespace

Result<KeeperLink> KeeperLink::connect(int directory_fd, const std::string& keeper, const std::string& process) {
  auto socket = connect_to(directory_fd, keeper);
  if (!socket) {
    return fail(socket.error());
  }
  KeeperLink link(std::move(*socket));
  link.send(Order::attach, 0, process);
  return link;
}

bool KeeperLink::is_listening(int directory_fd, const std::string& keeper) {
  const auto socket = connect_to(directory_fd, keeper);
  return socket || socket.error().code != k_keeper_gone;
}

Received KeeperLink::receive(ControlPacket& packet) {
  return receive_control(m_socket.get(), packet);
}

bool KeeperLink::send(Order order, std::uint32_t value, std::string_view payload) {
  return send_control(m_socket.get(), static_cast<std::uint8_t>(order), value, payload);
}

Result<void> KeeperLink::assign(const Assignment& assignment) {
  return send_assignment(m_socket.get(), assignment);
}

bool KeeperLink::query() {
  return send(Order::query, 0);
}

bool KeeperLink::watch_growth() {
  return send(Order::watch_growth, 0);
}

bool KeeperLink::input(std::string_view bytes, bool then_end) {
  return send(Order::input, then_end ? 1 : 0, bytes);
}

bool KeeperLink::signal(int number) {
  return send(Order::signal, static_cast<std::uint32_t>(number));
}

bool KeeperLink::end_tree(wire::Cause cause, std::uint32_t grace_ms) {
  const char byte = static_cast<char>(cause);
  return send(Order::end, grace_ms, {&byte, 1});
}

}  // namespace dockbridge::agent
