#include "agent/session/silence.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

/// Number of checks during a silence of the usual length, and bounds of the interval between them. Starvation is
/// measured from check to check.
constexpr int k_checks = 10;
constexpr milliseconds k_min_interval{50};
constexpr milliseconds k_max_interval{1000};

}  // namespace

bool SilenceLimit::is_reached(milliseconds idle, milliseconds starved) const {
  return idle >= (heeds_starvation() ? std::min(usual + starved, longest) : usual);
}

milliseconds SilenceLimit::next_check(milliseconds idle, milliseconds starved) const {
  if (!heeds_starvation()) {
    return usual - idle;
  }
  const milliseconds left = std::min(usual + starved, longest) - idle;
  return std::min(left, std::clamp(usual / k_checks, k_min_interval, k_max_interval));
}

}  // namespace dockbridge::agent
