#include "agent/session/frozen_time.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

/// Less than this is only a busy machine.
constexpr milliseconds k_least_span{1000};
constexpr std::size_t k_most_spans = 1000;

}  // namespace

void FrozenTime::note_wait(Clock::time_point began, milliseconds timeout, Clock::time_point woken) {
  if (woken - began - timeout < k_least_span) {
    return;
  }
  m_spans.emplace_back(began + timeout, woken);
  if (m_spans.size() > k_most_spans) {
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
