#pragma once

#include <optional>

#include "util/clock.hpp"
#include "wire/frame.hpp"

namespace dockbridge::sandbox {

/// Decides when an agent is pinged, and when it counts as silent. No I/O, no clock, no lock.
class Liveness {
 public:
  /// While calls wait, the agent is pinged if it has sent nothing for this time.
  static constexpr milliseconds k_busy_ping_interval{1000};
  /// If a ping is not answered within this time, the container is paused or the engine hangs.
  static constexpr milliseconds k_silence_limit{2000};

  explicit Liveness(Clock::time_point now) : m_last_received(now) {}

  void note_received(Clock::time_point now) {
    m_last_received = now;
    m_unanswered_ping.reset();
  }
  /// An agent that reads a long request is alive, even if a ping after that has not reached it yet.
  void note_part_written(Clock::time_point now) {
    m_last_received = now;
    m_unanswered_ping = m_unanswered_ping ? std::optional(now) : std::nullopt;
  }
  void note_ping(Clock::time_point now) { m_unanswered_ping = now; }

  [[nodiscard]] bool is_ping_due(Clock::time_point now, bool calls_wait) const {
    return !m_unanswered_ping &&
           now - m_last_received > (calls_wait ? k_busy_ping_interval : wire::k_idle_ping_interval);
  }
  [[nodiscard]] bool is_silent(Clock::time_point now) const {
    return m_unanswered_ping && now - *m_unanswered_ping > k_silence_limit;
  }

 private:
  Clock::time_point m_last_received;
  std::optional<Clock::time_point> m_unanswered_ping;
};

}  // namespace dockbridge::sandbox
