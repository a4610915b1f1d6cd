#include "http_client.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>

#include "util/clock.hpp"

namespace dockbridge::bench {

namespace {

constexpr milliseconds k_listening_patience{5000};
constexpr milliseconds k_http_patience{60'000};

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

int free_port() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

HttpClient::HttpClient(int port) {
  const sockaddr_in address = loopback(port);
  const auto deadline = Deadline::after(k_listening_patience);
  while (true) {
    m_fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(m_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      break;
    }
    if (deadline.passed()) {
      throw std::runtime_error("the server did not start to listen");
    }
    ::poll(nullptr, 0, 10);
  }
  const int yes = 1;
  ::setsockopt(m_fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void HttpClient::fill() {
  pollfd polled{m_fd.get(), POLLIN, 0};
  std::array<char, 65536> bytes;
  const bool ready = ::poll(&polled, 1, static_cast<int>(k_http_patience.count())) > 0;
  const ssize_t got = ready ? ::recv(m_fd.get(), bytes.data(), bytes.size(), 0) : -1;
  if (got <= 0) {
    throw std::runtime_error("the server did not answer, or closed the connection");
  }
  m_buffer.append(bytes.data(), static_cast<std::size_t>(got));
}

std::string HttpClient::take(std::size_t count) {
  while (m_buffer.size() < count) {
    fill();
  }
  std::string taken = m_buffer.substr(0, count);
  m_buffer.erase(0, count);
  return taken;
}

std::string HttpClient::take_until(const std::string& end) {
  std::size_t found = 0;
  while ((found = m_buffer.find(end)) == std::string::npos) {
    fill();
  }
  return take(found + end.size());
}

std::string HttpClient::post(const std::string& method, const std::string& name, const std::string& body) {
  const std::string request = fmt::format(
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, "
      "text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {}\r\n{}Content-Length: {}\r\n\r\n{}",
      method, name.empty() ? "" : "Mcp-Name: " + name + "\r\n", body.size(), body);
  if (::send(m_fd.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    throw std::runtime_error("the request could not be sent");
  }
  const std::string head = take_until("\r\n\r\n");
  if (!head.starts_with("HTTP/1.1 200")) {
    throw std::runtime_error("refused: " + head.substr(0, head.find('\r')));
  }
  if (const std::size_t length = head.find("Content-Length: "); length != std::string::npos) {
    return take(std::stoul(head.substr(length + 16)));
  }
  std::string events;
  while (true) {
    const std::size_t size = std::stoul(take_until("\r\n"), nullptr, 16);
    events += take(size);
    take(2);
    if (size == 0) {
      const std::size_t data = events.rfind("data: ");
      return events.substr(data + 6, events.find('\n', data) - data - 6);
    }
  }
}

}  // namespace dockbridge::bench
