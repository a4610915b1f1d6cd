#pragma once

#include "util/clock.hpp"

namespace dockbridge::agent {

/// How long a process may be silent before that is told. Time in which it was starved, that is, had no CPU to run on,
/// is not counted, but `longest` is the end of it.
struct SilenceLimit {
  milliseconds usual{0};
  milliseconds longest{0};  ///< no longer than `usual`: that it was starved makes no difference

  [[nodiscard]] bool heeds_starvation() const { return longest > usual; }
  [[nodiscard]] bool is_reached(milliseconds idle, milliseconds starved) const;
  /// How long after such a state the next one is to be asked for.
  [[nodiscard]] milliseconds next_look(milliseconds idle, milliseconds starved) const;
};

}  // namespace dockbridge::agent
