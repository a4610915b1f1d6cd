#include "mcp/transport/http/health_paths.hpp"

#include "mcp/transport/http/loopback.hpp"
#include "mcp/transport/http/refusal.hpp"

namespace dockbridge::mcp::http {

Response HealthPaths::serve(const Request& request) {
  const bool known = request.path == "/healthz" || request.path == "/readyz" || request.path == "/metrics";
  if (!known) {
    return refused(404, "Not found. MCP is at /mcp");
  }
  if (request.method != "GET") {
    return refused(405, "only GET");
  }
  // Without a token these paths only report. Any local process, a page in a local browser or a client behind a proxy
  // can request them, and none of these may change anything.
  const auto caller = m_access.admit(request.header("Authorization"), request.client.address(), Clock::now());
  if (!caller && !is_loopback(request.client.address())) {
    return refused(caller.error().status, "A bearer token is required");
  }
  const bool has_token = caller && !m_access.open();
  // These paths wait for the agent or the engine. Many such requests would take the connections of other clients.
  const auto claim = has_token ? nullptr : m_requests.claim("");
  if (!has_token && !claim) {
    return too_many("health requests");
  }
  Response response;
  if (request.path == "/metrics") {
    response.content_type = "text/plain; version=0.0.4";
    response.body = m_metrics.text();
  } else if (request.path == "/healthz") {
    json live = m_health.live ? m_health.live() : json{{"status", "ok"}};
    live["sessions"] = m_sessions.count();
    response.body = dump(live);
  } else {
    response = readiness(has_token);
  }
  return response;
}

Response HealthPaths::readiness(bool may_start) const {
  Response response;
  auto ready = m_health.ready ? m_health.ready(may_start) : Result<json>(json{{"status", "ok"}});
  if (!ready) {
    response.status = 503;
    response.body = dump(json{{"status", "not ready"}, {"error", ready.error().sentence()}});
    return response;
  }
  // Degraded is ready: with another status, a load balancer would send all clients elsewhere.
  const CallLoad load = m_scheduler.load(Clock::now());
  if (const std::string reason = load.reason(); !reason.empty()) {
    ready->update({{"status", "degraded"}, {"reason", reason}, {"waitingCalls", load.waiting}});
  }
  response.body = dump(*ready);
  return response;
}

}  // namespace dockbridge::mcp::http
