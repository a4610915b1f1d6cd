#pragma once

#include "util/clock.hpp"

namespace dockbridge::agent {

/// Silence of a process that ends a wait. Time in which the process was starved, that is, had no CPU to run on, is not
/// counted, up to `longest`.
struct SilenceLimit {
  milliseconds usual{0};
  milliseconds longest{0};  ///< starvation is ignored if this is not longer than `usual`

  [[nodiscard]] bool heeds_starvation() const { return longest > usual; }
  [[nodiscard]] bool is_reached(milliseconds idle, milliseconds starved) const;
  /// Time after which the next state is needed.
  [[nodiscard]] milliseconds next_check(milliseconds idle, milliseconds starved) const;
};

}  // namespace dockbridge::agent
