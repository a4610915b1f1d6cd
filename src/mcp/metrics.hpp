#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::mcp {

/// The lines before the values of one metric, in Prometheus text.
std::string metric_head(const char* name, const char* type, const char* help);

/// Counters and latencies, reported as Prometheus text. Any thread may call.
class Metrics {
 public:
  void count_call(const std::string& tool, const std::string& outcome, Clock::duration took);
  /// Counts a refused request or connection by reason.
  void count_refusal(const std::string& reason);
  void set_waiting_calls(std::size_t waiting) { m_waiting_calls = waiting; }
  /// Counts a call that has waited for capacity and is made now.
  void count_waited_call(Clock::duration waited);
  /// Counts a call that was rejected for lack of capacity.
  void count_rejected_call(const std::string& reason);
  void count_http_request(int status);
  void count_bytes(std::uint64_t received, std::uint64_t sent);
  /// `source` returns more lines for each report. What it uses has to outlive this object.
  void add_source(std::function<std::string()> source);

  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::array<double, 10> k_bounds_seconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10, 60};
  static constexpr std::size_t k_max_outcomes = 1000;  ///< a limit, because the container chooses some of them
  struct Latency {
    std::array<std::uint64_t, k_bounds_seconds.size()> up_to{};
    std::uint64_t count = 0;
    double seconds = 0;
  };

  std::atomic<std::uint64_t> m_received{0};
  std::atomic<std::uint64_t> m_sent{0};
  std::atomic<std::size_t> m_waiting_calls{0};
  mutable Mutex m_mutex;
  std::map<std::pair<std::string, std::string>, std::uint64_t> m_calls GUARDED_BY(m_mutex);
  std::map<std::string, Latency> m_latencies GUARDED_BY(m_mutex);
  std::map<std::string, std::uint64_t> m_refusals GUARDED_BY(m_mutex);
  std::uint64_t m_waited_calls GUARDED_BY(m_mutex) = 0;
  double m_waited_seconds GUARDED_BY(m_mutex) = 0;
  std::map<std::string, std::uint64_t> m_rejected_calls GUARDED_BY(m_mutex);
  std::map<int, std::uint64_t> m_http_requests GUARDED_BY(m_mutex);
  std::vector<std::function<std::string()>> m_sources GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::mcp
