#include "agent/session/frozen_time.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

/// A shorter delay is caused by a busy machine.
constexpr milliseconds k_min_span{1000};
constexpr std::size_t k_max_spans = 1000;

}  // namespace

void FrozenTime::note_wait(Clock::time_point began, milliseconds timeout, Clock::time_point woken) {
  if (woken - began - timeout < k_min_span) {
    return;
  }
  m_spans.emplace_back(began + timeout, woken);
  if (m_spans.size() > k_max_spans) {
    m_spans.pop_front();
  }
}

milliseconds FrozenTime::between(Clock::time_point from, Clock::time_point to) const {
  Clock::duration frozen{};
  for (const auto& [begin, end] : m_spans) {
    frozen += std::max(Clock::duration::zero(), std::min(end, to) - std::max(begin, from));
  }
  return std::chrono::duration_cast<milliseconds>(frozen);
}

}  // namespace dockbridge::agent
