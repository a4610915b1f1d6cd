#include "agent/session/silence.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

/// Starvation is counted from one look to the next: so many of them in a usual silence, within these bounds.
constexpr int k_looks = 10;
constexpr milliseconds k_shortest_interval{50};
constexpr milliseconds k_longest_interval{1000};

}  // namespace

bool SilenceLimit::is_reached(milliseconds idle, milliseconds starved) const {
  return idle >= (heeds_starvation() ? std::min(usual + starved, longest) : usual);
}

milliseconds SilenceLimit::next_look(milliseconds idle, milliseconds starved) const {
  if (!heeds_starvation()) {
    return usual - idle;
  }
  const milliseconds left = std::min(usual + starved, longest) - idle;
  return std::min(left, std::clamp(usual / k_looks, k_shortest_interval, k_longest_interval));
}

}  // namespace dockbridge::agent
