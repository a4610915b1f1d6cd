#pragma once

#include <deque>
#include <utility>

#include "util/clock.hpp"

namespace dockbridge::agent {

/// Spans in which nothing in the container could run, because it was paused or its machine slept. A wait of at most a
/// second that ends much later reveals such a span. Up to a second of each span is not counted.
class FrozenTime {
 public:
  /// Records a wait that began at `began`, should have ended within `timeout`, and ended at `woken`.
  void note_wait(Clock::time_point began, milliseconds timeout, Clock::time_point woken);
  /// Frozen time within this interval.
  [[nodiscard]] milliseconds between(Clock::time_point from, Clock::time_point to) const;

 private:
  std::deque<std::pair<Clock::time_point, Clock::time_point>> m_spans;  ///< the latest ones
};

}  // namespace dockbridge::agent
