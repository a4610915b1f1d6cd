#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mcp/call_scheduler.hpp"
#include "mcp/hub.hpp"
#include "mcp/transport/http/front.hpp"
#include "mcp/transport/http/listener.hpp"

namespace dockbridge::mcp {

struct HttpSettings {
  http::Endpoint endpoint;
  http::Limits limits;
  std::vector<http::Token> tokens;   ///< empty means no authentication, for loopback only
  std::vector<std::string> hosts;    ///< accepted Host names, in addition to the local ones
  std::vector<std::string> origins;  ///< origins that may call, in addition to the local ones
  std::string tls_certificate;       ///< empty means no TLS
  std::string tls_key;
  http::Health health;
};

/// Serves MCP over Streamable HTTP at /mcp until it is stopped, on threads of its own.
class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(const HttpSettings& settings, Hub& hub, CallScheduler& scheduler);

  [[nodiscard]] int port() const { return m_listener->port(); }
  /// Returns within two seconds. False if calls still run.
  bool stop();

 private:
  HttpServer() = default;

  std::unique_ptr<http::Access> m_access;
  std::unique_ptr<http::Front> m_front;
  std::unique_ptr<http::Listener> m_listener;
};

}  // namespace dockbridge::mcp
