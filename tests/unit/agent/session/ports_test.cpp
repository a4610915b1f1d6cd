#include "agent/session/ports.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "agent/session/survivors.hpp"
#include "util/fd.hpp"

using namespace dockbridge;
using agent::find_listener;
using agent::is_port_open;

namespace {

/// A socket that listens on some port of the loopback interface.
class Socket {
 public:
  explicit Socket(int family) : m_fd(::socket(family, SOCK_STREAM, 0)) {
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (family == AF_INET) {
      reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
    }
    m_listens = ::bind(m_fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                ::listen(m_fd.get(), 1) == 0 &&
                ::getsockname(m_fd.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0;
    // Both kinds of address have the port at the same place.
    m_port = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
  }

  [[nodiscard]] bool listens() const { return m_listens; }
  [[nodiscard]] std::uint16_t port() const { return m_port; }
  [[nodiscard]] int fd() const { return m_fd.get(); }
  void close() { m_fd.reset(); }

 private:
  Fd m_fd;
  bool m_listens = false;
  std::uint16_t m_port = 0;
};

/// A program that inherits the socket and has this variable in its environment. Killed at the end of the test.
class Server {
 public:
  Server(const std::string& script, const std::string& variable) : m_pid(::fork()) {
    if (m_pid == 0) {
      ::setpgid(0, 0);
      const std::array<const char*, 3> environment = {"PATH=/usr/bin:/bin", variable.c_str(), nullptr};
      ::execle("/bin/sh", "sh", "-c", script.c_str(), "the server", nullptr, environment.data());
      ::_exit(127);
    }
    ::setpgid(m_pid, m_pid);
  }
  ~Server() {
    ::kill(-m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] pid_t pid() const { return m_pid; }
  /// Returns when the program runs, which has a different environment from this process.
  void await_start(const std::string& process) const {
    while (agent::process_of(m_pid, agent::all_processes()) != process) {
      REQUIRE(::kill(m_pid, 0) == 0);
      ::usleep(1000);
    }
  }

 private:
  pid_t m_pid;
};

}  // namespace

TEST_CASE("ports: the listening process is found by its socket") {
  for (const int family : {AF_INET, AF_INET6}) {
    Socket socket(family);
    if (!socket.listens() && family == AF_INET6) {
      MESSAGE("IPv6 is not available");
      continue;
    }
    REQUIRE(socket.listens());
    CHECK(is_port_open(socket.port()));
    const auto listener = find_listener(socket.port(), "proc_1_a");
    CHECK(listener.pid == ::getpid());
    CHECK(listener.command.find("unit_agent") != std::string::npos);
    CHECK(listener.process.empty());
    socket.close();
    CHECK_FALSE(is_port_open(socket.port()));
    CHECK(find_listener(socket.port(), "proc_1_a").pid == 0);
  }
}

TEST_CASE("ports: the environment of a listener or its parent names its process") {
  Socket socket(AF_INET);
  REQUIRE(socket.listens());
  const std::string process = fmt::format("proc_{}_port", ::getpid());
  // The child has the socket too, but no environment.
  const Server server("env -i /bin/sleep 600 & wait", fmt::format("DOCKBRIDGE_PROCESS={}", process));
  server.await_start(process);
  socket.close();
  const auto listener = find_listener(socket.port(), process);
  CHECK(listener.pid != 0);
  CHECK(listener.process == process);
  CHECK(find_listener(socket.port(), "proc_1_other").process == process);
}

TEST_CASE("ports: an invalid process id in an environment is ignored") {
  const Server server("exec /bin/sleep 600", "DOCKBRIDGE_PROCESS=../../etc/passwd");
  CHECK(agent::process_of(server.pid(), agent::all_processes()).empty());
}
