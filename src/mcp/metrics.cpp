#include "mcp/metrics.hpp"

#include <fmt/format.h>

namespace dockbridge::mcp {

std::string metric_head(const char* name, const char* type, const char* help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

void Metrics::count_call(const std::string& tool, const std::string& outcome, Clock::duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const MutexLock lock(m_mutex);
  const bool known = m_calls.size() < k_max_outcomes || m_calls.contains({tool, outcome});
  ++m_calls[{tool, known ? outcome : "other"}];
  Latency& latency = m_latencies[tool];
  ++latency.count;
  latency.seconds += seconds;
  for (std::size_t i = 0; i < k_bounds_seconds.size(); ++i) {
    latency.up_to[i] += seconds <= k_bounds_seconds[i] ? 1 : 0;
  }
}

void Metrics::count_refusal(const std::string& reason) {
  const MutexLock lock(m_mutex);
  ++m_refusals[reason];
}

void Metrics::count_waited_call(Clock::duration waited) {
  const MutexLock lock(m_mutex);
  ++m_waited_calls;
  m_waited_seconds += std::chrono::duration<double>(waited).count();
}

void Metrics::count_rejected_call(const std::string& reason) {
  const MutexLock lock(m_mutex);
  ++m_rejected_calls[reason];
}

void Metrics::count_http_request(int status) {
  const MutexLock lock(m_mutex);
  ++m_http_requests[status];
}

void Metrics::count_bytes(std::uint64_t received, std::uint64_t sent) {
  m_received += received;
  m_sent += sent;
}

void Metrics::add_source(std::function<std::string()> source) {
  const MutexLock lock(m_mutex);
  m_sources.push_back(std::move(source));
}

std::string Metrics::text() const {
  MutexLock lock(m_mutex);
  std::string text = metric_head("dockbridge_calls_total", "counter", "Tool calls by tool and outcome.");
  for (const auto& [key, count] : m_calls) {
    text += fmt::format("dockbridge_calls_total{{tool=\"{}\",outcome=\"{}\"}} {}\n", key.first, key.second, count);
  }
  text += metric_head("dockbridge_call_seconds", "histogram", "Duration of tool calls.");
  for (const auto& [tool, latency] : m_latencies) {
    for (std::size_t i = 0; i < k_bounds_seconds.size(); ++i) {
      text += fmt::format("dockbridge_call_seconds_bucket{{tool=\"{}\",le=\"{}\"}} {}\n", tool, k_bounds_seconds[i],
                          latency.up_to[i]);
    }
    text += fmt::format("dockbridge_call_seconds_bucket{{tool=\"{0}\",le=\"+Inf\"}} {1}\n", tool, latency.count);
    text += fmt::format("dockbridge_call_seconds_sum{{tool=\"{}\"}} {}\n", tool, latency.seconds);
    text += fmt::format("dockbridge_call_seconds_count{{tool=\"{}\"}} {}\n", tool, latency.count);
  }
  text += metric_head("dockbridge_waiting_calls", "gauge", "Calls that wait for capacity.");
  text += fmt::format("dockbridge_waiting_calls {}\n", m_waiting_calls.load());
  text += metric_head("dockbridge_call_wait_seconds", "summary", "Time for which started calls have waited.");
  text += fmt::format("dockbridge_call_wait_seconds_sum {}\n", m_waited_seconds);
  text += fmt::format("dockbridge_call_wait_seconds_count {}\n", m_waited_calls);
  text += metric_head("dockbridge_rejected_calls_total", "counter", "Calls rejected for lack of capacity, by reason.");
  for (const auto& [reason, count] : m_rejected_calls) {
    text += fmt::format("dockbridge_rejected_calls_total{{reason=\"{}\"}} {}\n", reason, count);
  }
  text += metric_head("dockbridge_refusals_total", "counter", "Rejected requests by reason.");
  for (const auto& [reason, count] : m_refusals) {
    text += fmt::format("dockbridge_refusals_total{{reason=\"{}\"}} {}\n", reason, count);
  }
  text += metric_head("dockbridge_http_requests_total", "counter", "HTTP requests by status.");
  for (const auto& [status, count] : m_http_requests) {
    text += fmt::format("dockbridge_http_requests_total{{status=\"{}\"}} {}\n", status, count);
  }
  text += metric_head("dockbridge_http_bytes_total", "counter", "Bytes over HTTP.");
  text += fmt::format("dockbridge_http_bytes_total{{direction=\"received\"}} {}\n", m_received.load());
  text += fmt::format("dockbridge_http_bytes_total{{direction=\"sent\"}} {}\n", m_sent.load());
  const auto sources = m_sources;
  lock.unlock();
  for (const auto& source : sources) {
    text += source();
  }
  return text;
}

}  // namespace dockbridge::mcp
