#include "support/http.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace dockbridge::test {

namespace {

constexpr milliseconds k_patience{20'000};

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  const auto lower = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  const std::size_t found = lower(head).find("\r\n" + lower(name) + ": ");
  if (found == std::string::npos) {
    return "";
  }
  const std::size_t begin = found + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

HttpConnection::HttpConnection(int port) : m_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(m_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

void HttpConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(m_fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;  // the server may refuse before it has read everything
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void HttpConnection::send_request(const std::string& method, const std::string& path, const HttpHeaders& headers,
                                  const std::string& body) {
  std::string text = method + " " + path + " HTTP/1.1\r\n";
  bool has_host = false;
  for (const std::string& header : headers) {
    has_host = has_host || header.starts_with("Host:");
    text += header + "\r\n";
  }
  text += has_host ? "" : "Host: localhost\r\n";
  text += method == "POST" ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : "";
  send(text + "\r\n" + body);
}

bool HttpConnection::fill() {
  pollfd polled{m_fd.get(), POLLIN, 0};
  REQUIRE_MESSAGE(::poll(&polled, 1, static_cast<int>(k_patience.count())) > 0, "nothing came in time");
  std::array<char, 65536> bytes{};
  const ssize_t got = ::recv(m_fd.get(), bytes.data(), bytes.size(), 0);
  m_buffer.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got > 0;
}

/// Removes the bytes up to and including `end`, and returns those before it; "" if the connection ends first.
std::string HttpConnection::until(std::string_view end) {
  while (true) {
    if (const std::size_t found = m_buffer.find(end); found != std::string::npos) {
      std::string taken = m_buffer.substr(0, found + end.size());
      m_buffer.erase(0, taken.size());
      return taken;
    }
    if (!fill()) {
      return "";
    }
  }
}

HttpAnswer HttpConnection::receive_head() {
  HttpAnswer answer;
  answer.head = until("\r\n\r\n");
  answer.status = answer.head.size() > 12 ? std::stoi(answer.head.substr(9, 3)) : 0;
  return answer;
}

HttpAnswer HttpConnection::receive() {
  HttpAnswer answer = receive_head();
  if (answer.header("Transfer-Encoding") == "chunked") {
    while (const auto event = next_event()) {
      answer.body = event->empty() ? answer.body : *event;
    }
    return answer;
  }
  const std::string length = answer.header("Content-Length");
  const std::size_t size = length.empty() ? 0 : std::stoul(length);
  while (m_buffer.size() < size && fill()) {
  }
  answer.body = m_buffer.substr(0, size);
  m_buffer.erase(0, size);
  return answer;
}

std::optional<std::string> HttpConnection::next_event() {
  std::size_t end = 0;
  while ((end = m_events.find("\n\n")) == std::string::npos) {
    if (m_stream_ended) {
      return std::nullopt;
    }
    const std::string size_line = until("\r\n");
    const std::size_t size = size_line.empty() ? 0 : std::stoul(size_line, nullptr, 16);
    while (m_buffer.size() < size + 2 && fill()) {
    }
    m_events += m_buffer.substr(0, size);
    m_buffer.erase(0, size + 2);
    m_stream_ended = size == 0;
  }
  const std::string event = m_events.substr(0, end + 1);
  m_events.erase(0, end + 2);
  std::string data;
  for (std::size_t from = 0; from < event.size();) {
    const std::size_t line_end = event.find('\n', from);
    const std::string line = event.substr(from, line_end - from);
    if (line.starts_with("id: ")) {
      m_event_id = line.substr(4);
    } else if (line.starts_with("data: ")) {
      data += line.substr(6);
    }
    from = line_end + 1;
  }
  return data;
}

HttpAnswer HttpConnection::request(const std::string& method, const std::string& path, const HttpHeaders& headers,
                                   const std::string& body) {
  send_request(method, path, headers, body);
  return receive();
}

bool HttpConnection::ended() {
  while (fill()) {
  }
  return true;
}

}  // namespace dockbridge::test
