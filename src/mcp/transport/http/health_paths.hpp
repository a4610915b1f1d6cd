#pragma once

#include <functional>

#include "error/error.hpp"
#include "mcp/call_scheduler.hpp"
#include "mcp/metrics.hpp"
#include "mcp/transport/http/access.hpp"
#include "mcp/transport/http/exchange.hpp"
#include "mcp/transport/http/sessions.hpp"
#include "util/quota.hpp"

namespace dockbridge::mcp::http {

/// Reports about the program as a whole. The functions may block, within bounds. An empty one reports "ok".
struct Health {
  std::function<json()> live;  ///< for /healthz
  /// For /readyz. Without `may_start` it only reports: it does not connect to, start or create the container.
  std::function<Result<json>(bool may_start)> ready;
};

/// Serves /healthz, /readyz and /metrics.
class HealthPaths {
 public:
  HealthPaths(const Limits& limits, Access& access, const Sessions& sessions, const Metrics& metrics,
              const CallScheduler& scheduler, Health health)
      : m_access(access),
        m_sessions(sessions),
        m_metrics(metrics),
        m_scheduler(scheduler),
        m_health(std::move(health)),
        m_requests(limits.health_requests) {}

  Response serve(const Request& request);

 private:
  [[nodiscard]] Response readiness(bool may_start) const;

  Access& m_access;
  const Sessions& m_sessions;
  const Metrics& m_metrics;
  const CallScheduler& m_scheduler;
  const Health m_health;
  Quota m_requests;  // from clients without a token
};

}  // namespace dockbridge::mcp::http
