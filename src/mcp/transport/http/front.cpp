#include "mcp/transport/http/front.hpp"

#include "mcp/transport/http/refusal.hpp"

namespace dockbridge::mcp::http {

namespace {

constexpr const char* k_path = "/mcp";

}  // namespace

Front::Front(Hub& hub, CallScheduler& scheduler, Limits limits, Access& access, Origins origins, Health health)
    : m_metrics(hub.metrics),
      m_limits(limits),
      m_origins(std::move(origins)),
      m_sessions(hub, m_limits),
      m_health(m_limits, access, m_sessions, hub.metrics, scheduler, std::move(health)),
      m_mcp(hub, scheduler, m_limits, access, m_sessions) {}

Response Front::handle(Request& request) {
  auto refusal = reject_early(request);
  Response response = refusal                  ? std::move(*refusal)
                      : request.path == k_path ? m_mcp.serve(request)
                                               : m_health.serve(request);
  if (!response.refusal.empty()) {
    m_metrics.count_refusal(response.refusal);
  }
  return response;
}

std::optional<Response> Front::reject_early(const Request& request) const {
  if (m_mcp.is_stopping()) {
    Response response = refused(503, "The server is stopping");
    response.headers.emplace_back("Retry-After", "1");
    response.close = true;
    return response;
  }
  const auto host = request.header("Host");
  if (!host || !m_origins.allows_host(*host)) {
    return refused(403, "this Host is not served here; see --allow-host");
  }
  const auto origin = request.header("Origin");
  if (request.count("Origin") > 0 && (!origin || !m_origins.allows_origin(*origin))) {
    return refused(403, "pages of this Origin are not served here; see --allow-origin");
  }
  if (request.count("Transfer-Encoding") > 0) {
    return refused(411, "The request needs a Content-Length");
  }
  if (request.count("Content-Encoding") > 0) {
    return refused(415, "A Content-Encoding is not supported");
  }
  return std::nullopt;
}

}  // namespace dockbridge::mcp::http
