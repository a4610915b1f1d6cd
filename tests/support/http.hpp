#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::test {

struct HttpAnswer {
  int status = 0;  ///< 0 means that the connection ended without an answer
  std::string head;
  std::string body;

  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(body); }
  /// Value of a header; empty if it is missing.
  [[nodiscard]] std::string header(const std::string& name) const;
};

using HttpHeaders = std::vector<std::string>;  ///< "Name: value"

/// A client connection to 127.0.0.1 that can send invalid HTTP. Fails the test if no answer arrives in time.
class HttpConnection {
 public:
  explicit HttpConnection(int port);

  void send(std::string_view bytes);
  void send_request(const std::string& method, const std::string& path, const HttpHeaders& headers,
                    const std::string& body = "");
  /// Receives a complete answer.
  HttpAnswer receive();
  /// Receives only the head of an answer; events follow.
  HttpAnswer receive_head();
  /// Receives the data of the next event; "" for a comment, nullopt at the end of the stream.
  std::optional<std::string> next_event();
  /// Id of the last event.
  [[nodiscard]] const std::string& event_id() const { return m_event_id; }
  HttpAnswer request(const std::string& method, const std::string& path, const HttpHeaders& headers,
                     const std::string& body = "");
  [[nodiscard]] bool ended();
  void close() { m_fd.reset(); }

 private:
  bool fill();
  std::string until(std::string_view end);

  Fd m_fd;
  std::string m_buffer;
  std::string m_events;
  std::string m_event_id;
  bool m_stream_ended = false;
};

}  // namespace dockbridge::test
