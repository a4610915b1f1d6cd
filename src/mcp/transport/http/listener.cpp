#include "mcp/transport/http/listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "mcp/transport/http/connection.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr int k_backlog = 1024;
constexpr milliseconds k_tick{1000};
constexpr milliseconds k_handshake_time{10'000};
/// Limit on the threads of evicted connections that are still closing.
constexpr std::size_t k_closing = 64;

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text.data(), text.size());
  }
  return text.data();
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

}  // namespace

Listener::Listener(Limits limits, std::optional<TlsContext> tls, Handler handler, Metrics& metrics, Log& log)
    : m_limits(limits),
      m_tls(std::move(tls)),
      m_handler(std::move(handler)),
      m_metrics(metrics),
      m_log(log),
      m_table(limits.connections, limits.connections_per_address),
      m_threads(limits.connections + k_closing) {}

Listener::~Listener() {
  stop();
}

Result<void> Listener::start(const Endpoint& endpoint, Tick tick) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found);
  if (problem != 0) {
    return fail(ErrorCode::cannot_listen,
                fmt::format("Address not found: {}: {}", endpoint.host, ::gai_strerror(problem)),
                "Give --http an address of this machine, such as 127.0.0.1:7332");
  }
  m_socket = Fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(m_socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool listening = m_socket && ::bind(m_socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                         ::listen(m_socket.get(), k_backlog) == 0;
  const int error = errno;
  ::freeaddrinfo(found);
  if (!listening) {
    return fail(ErrorCode::cannot_listen,
                fmt::format("Cannot listen on {}:{}: {}", endpoint.host, endpoint.port, std::strerror(error)));
  }
  m_port = port_of(m_socket.get());
  m_acceptor = std::thread([this, tick = std::move(tick)] { accept_loop(tick); });
  return {};
}

void Listener::accept_loop(const Tick& tick) {
  auto next_tick = Deadline::after(k_tick);
  while (!m_stopping) {
    std::array<pollfd, 2> polled = {pollfd{m_socket.get(), POLLIN, 0}, pollfd{m_wakeup.fd(), POLLIN, 0}};
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(next_tick.remaining().count()));
    if (next_tick.passed()) {
      next_tick = Deadline::after(k_tick);
      tick();
    }
    if (ready <= 0 || polled[0].revents == 0) {
      continue;
    }
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    Fd fd(::accept4(m_socket.get(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      take(std::move(fd), address_text(address));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      m_metrics.count_refusal("no_descriptors");
      {
        const MutexLock lock(m_mutex);
        if (const auto evicted = m_table.evict()) {
          close_waiting(*evicted);
        }
      }
      ::poll(nullptr, 0, 50);  // the connection stays in the backlog meanwhile
    }
  }
}

void Listener::take(Fd fd, std::string peer) {
  const int yes = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const int number = fd.get();
  const auto socket = std::make_shared<Socket>(std::move(fd), std::move(peer));
  std::optional<ConnectionTable::Admitted> admitted;
  {
    const MutexLock lock(m_mutex);
    admitted = m_table.admit(address_group(socket->peer()), Clock::now());
    if (admitted) {
      m_open.emplace(admitted->id, socket.get());
    }
    if (admitted && admitted->evicted) {
      close_waiting(*admitted->evicted);
    }
  }
  const bool served = admitted && m_threads.submit([this, socket, id = admitted->id] { serve(*socket, id); });
  if (!served) {
    if (admitted) {
      const MutexLock lock(m_mutex);
      m_table.remove(admitted->id);
      m_open.erase(admitted->id);
    }
    m_metrics.count_refusal("connections");
    if (!m_tls) {
      const std::string text = refusal(503, "Service Unavailable", "1");
      (void)::send(number, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
}

/// Shuts down the socket of an evicted connection; its thread then ends.
void Listener::close_waiting(ConnectionTable::Id id) {
  m_metrics.count_refusal("evicted");
  if (const auto found = m_open.find(id); found != m_open.end()) {
    found->second->shut_down();
  }
}

void Listener::serve(Socket& socket, ConnectionTable::Id id) {
  const auto on_request = [this, id](bool begins) {
    const MutexLock lock(m_mutex);
    if (begins) {
      return m_table.begin_request(id);
    }
    m_table.end_request(id, Clock::now());
    return true;
  };
  try {
    if (!m_stopping && (!m_tls || socket.shake_hands(*m_tls, Deadline::after(k_handshake_time)))) {
      Connection(socket, {m_limits, m_handler, m_metrics, m_log, m_stopping, on_request}).serve();
    }
  } catch (const std::exception& error) {
    m_log.error("an HTTP connection failed", {{"error", error.what()}});
  }
  const MutexLock lock(m_mutex);
  m_table.remove(id);
  m_open.erase(id);
}

void Listener::stop() {
  {
    const MutexLock lock(m_mutex);
    m_stopping = true;
    for (const auto& [id, socket] : m_open) {
      socket->shut_down();
    }
  }
  m_wakeup.wake();
  if (m_acceptor.joinable()) {
    m_acceptor.join();
  }
  m_socket.reset();
}

}  // namespace dockbridge::mcp::http
