#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error/error.hpp"
#include "mcp/transport/http/socket.hpp"
#include "util/clock.hpp"
#include "util/wakeup.hpp"

namespace dockbridge::mcp::http {

/// Limits for connections and requests.
struct Limits {
  std::size_t header_bytes = 32 * 1024;
  std::size_t body_bytes = 16 * 1024 * 1024;
  /// Memory limit for all requests that are being read or running. Each owner may use half of it. At least two of the
  /// largest requests fit.
  std::size_t bodies_bytes = 256 * 1024 * 1024;
  milliseconds header_time{10'000};
  milliseconds body_time{60'000};
  milliseconds idle_time{75'000};   ///< between two requests
  milliseconds write_time{30'000};  ///< for a client that does not read
  milliseconds keep_alive{15'000};  ///< between two messages or comments on an event stream
  std::size_t connections = 1536;
  std::size_t connections_per_address = 1024;
  /// Streams and requests of one owner take at most half of an address's connections, so that other owners at the same
  /// address are served.
  std::size_t streams_per_owner = 256;
  std::size_t requests_per_owner = 256;  ///< running at the same time
  /// Running at the same time, including calls whose request has ended. Higher than the limit for requests, because a
  /// call counts until a moment after its reply.
  std::size_t calls_per_owner = 384;
  std::size_t health_requests = 8;  ///< running at the same time, from clients without a token
  double rate_per_owner = 10'000;   ///< requests a second
  std::size_t sessions_per_owner = 100;
  milliseconds session_idle{3'600'000};
};

/// The client of a request, while it is served.
class Client {
 public:
  Client(Socket& socket, std::shared_ptr<Wakeup> wakeup) : m_socket(socket), m_wakeup(std::move(wakeup)) {}

  enum class Event { woken, gone, nothing };
  /// Waits until the wakeup is used or the client closes the connection.
  [[nodiscard]] Event wait(milliseconds at_most) const;
  [[nodiscard]] const std::shared_ptr<Wakeup>& wakeup() const { return m_wakeup; }
  [[nodiscard]] const std::string& address() const { return m_socket.peer(); }

 private:
  Socket& m_socket;
  std::shared_ptr<Wakeup> m_wakeup;
};

/// A request whose head was received. The body is read on demand, so refusing the request is cheap.
struct Request {
  std::string method;
  std::string path;
  std::vector<std::pair<std::string, std::string>> headers;
  Client& client;
  /// Whether a body of this size may be read.
  using Room = std::function<bool(std::size_t bytes)>;
  /// Called once. The error's code is `too_large`, `too_slow`, `bad_length`, or `busy` if there was no room.
  std::function<Result<std::string>(const Room& room)> read_body;

  /// nullopt if the header is absent or occurs several times.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
  /// Whether an answer of this type may be sent, such as "application/json".
  [[nodiscard]] bool accepts(std::string_view type) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  bool close = false;                 ///< close the connection after it
  std::function<void()> delivered{};  ///< called after the body was written; may be empty
  std::string refusal{};              ///< reason why the request was refused; empty if it was admitted
  /// An event stream instead of a body. Returns the next text to send, nullopt at the end. May block.
  std::function<std::optional<std::string>()> events{};
};

using Handler = std::function<Response(Request& request)>;

}  // namespace dockbridge::mcp::http
