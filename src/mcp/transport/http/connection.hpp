#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "mcp/metrics.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/socket.hpp"
#include "util/log.hpp"

namespace dockbridge::mcp::http {

/// Serves the requests of one connection, one after the other, on the calling thread. cpp-httplib parses heads and
/// writes responses. Bytes and time of its input are limited here.
class Connection {
 public:
  struct Shared {
    const Limits& limits;
    const Handler& handler;
    Metrics& metrics;
    Log& log;
    std::atomic<bool>& stopping;
    /// Called after a request's head was received (`begins`), and after its response. If the first call returns false,
    /// the connection is closed.
    std::function<bool(bool begins)> on_request = [](bool) { return true; };
  };
  Connection(Socket& socket, Shared shared);
  ~Connection();

  void serve();

 private:
  class Library;
  std::unique_ptr<Library> m_library;
};

/// A whole response for a client that is not served, with its status and when to retry.
std::string refusal(int status, const char* reason, const char* retry_after = nullptr);

}  // namespace dockbridge::mcp::http
