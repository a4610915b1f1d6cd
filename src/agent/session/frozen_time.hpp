#pragma once

#include <deque>
#include <utility>

#include "util/clock.hpp"

namespace dockbridge::agent {

/// When nothing in the container could run, because it was paused or its machine slept. Who waits for at most a second
/// and is woken much later was frozen meanwhile. Of each such span, up to that second is not seen.
class FrozenTime {
 public:
  /// A wait from `began` on that should have taken at most `timeout` and was over at `woken`.
  void note_wait(Clock::time_point began, milliseconds timeout, Clock::time_point woken);
  /// How much of the time between the two was frozen.
  [[nodiscard]] milliseconds between(Clock::time_point from, Clock::time_point to) const;

 private:
  std::deque<std::pair<Clock::time_point, Clock::time_point>> m_spans;  // the last ones
};

}  // namespace dockbridge::agent
