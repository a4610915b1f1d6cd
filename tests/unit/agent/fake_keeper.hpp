#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "agent/control/packets.hpp"
#include "util/fd.hpp"
#include "util/socket_address.hpp"

namespace dockbridge::test {

/// A keeper's socket that a test serves instead of a keeper.
class FakeKeeper {
 public:
  FakeKeeper(int directory_fd, std::string name)
      : m_name(std::move(name)), m_listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const sockaddr_un address = socket_address(directory_fd, m_name);
    REQUIRE(::bind(m_listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(m_listener.get(), 16) == 0);
  }

  [[nodiscard]] const std::string& name() const { return m_name; }
  /// The next connection; empty if there is none.
  [[nodiscard]] Fd accept() const {
    return Fd(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  struct Heard {
    std::string process;
    agent::ControlPacket packet;
  };
  /// The orders of this kind from all connections until now, and the process that each of them named.
  [[nodiscard]] std::vector<Heard> heard(agent::Order order) const {
    std::vector<Heard> all;
    for (Fd link = accept(); link; link = accept()) {
      std::string process;
      agent::ControlPacket packet;
      while (agent::receive_control(link.get(), packet) == agent::Received::packet) {
        if (packet.header.type == static_cast<std::uint8_t>(agent::Order::attach)) {
          process = packet.payload;
        } else if (packet.header.type == static_cast<std::uint8_t>(order)) {
          all.push_back({process, packet});
        }
      }
    }
    return all;
  }

 private:
  std::string m_name;
  Fd m_listener;
};

}  // namespace dockbridge::test
