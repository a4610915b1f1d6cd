#include "agent/code/warm_policy.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

/// From the reply to the first start, so that the next request of the same call does not wait for it.
constexpr milliseconds k_delay{1};
/// Between two starts. Each of them needs a CPU for about this time.
constexpr milliseconds k_interval{50};
constexpr seconds k_pressure_pause{60};

}  // namespace

void WarmPolicy::note_start(std::size_t count) {
  m_wanted = count;
  m_awaits_reply = true;
}

void WarmPolicy::note_reply(Clock::time_point now) {
  if (m_awaits_reply) {
    m_awaits_reply = false;
    m_earliest = std::max(m_earliest, now + k_delay);
  }
}

void WarmPolicy::note_launch(Clock::time_point now) {
  m_earliest = now + k_interval;
}

void WarmPolicy::note_pressure(Clock::time_point now) {
  m_earliest = now + k_pressure_pause;
}

std::optional<Clock::time_point> WarmPolicy::next_launch(std::size_t existing) const {
  return m_awaits_reply || existing >= m_wanted ? std::nullopt : std::optional(m_earliest);
}

}  // namespace dockbridge::agent
