#pragma once

#include <optional>

#include "mcp/call_scheduler.hpp"
#include "mcp/transport/http/access.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/health_paths.hpp"
#include "mcp/transport/http/mcp_path.hpp"
#include "mcp/transport/http/origins.hpp"
#include "mcp/transport/http/sessions.hpp"

namespace dockbridge::mcp::http {

/// Applies the checks that hold for every path, and routes the request. The thread of the connection serves the
/// request. Pool threads make the calls.
class Front {
 public:
  Front(Hub& hub, CallScheduler& scheduler, Limits limits, Access& access, Origins origins, Health health);

  Response handle(Request& request);
  /// Ends idle sessions.
  void sweep(Clock::time_point now) { m_sessions.sweep(now); }
  /// Refuses requests from now on, and stops the conversations as `McpPath::stop` does.
  bool stop(milliseconds finish_patience, milliseconds detach_patience) {
    return m_mcp.stop(finish_patience, detach_patience);
  }

 private:
  [[nodiscard]] std::optional<Response> reject_early(const Request& request) const;

  Metrics& m_metrics;
  const Limits m_limits;
  const Origins m_origins;
  Sessions m_sessions;
  HealthPaths m_health;
  McpPath m_mcp;
};

}  // namespace dockbridge::mcp::http
