#pragma once

#include <algorithm>

#include "util/clock.hpp"

namespace dockbridge::sandbox {

/// How long a call stays with a process that runs on.
struct Patience {
  milliseconds inactivity{20'000};  ///< without output or input
  milliseconds total{600'000};      ///< altogether
};

enum class Verdict { keep_waiting, quiet, waited_enough };

struct WaitStep {
  Verdict verdict = Verdict::keep_waiting;
  milliseconds next{0};  ///< when to look again
};

/// Pure: what to do about a process that has been waited on for `waited` and has been quiet for `idle`.
constexpr WaitStep judge(const Patience& patience, milliseconds waited, milliseconds idle) {
  if (waited >= patience.total) {
    return {Verdict::waited_enough, milliseconds{0}};
  }
  // Quiet before the call began does not count against it.
  const milliseconds quiet = std::min(idle, waited);
  if (quiet >= patience.inactivity) {
    return {Verdict::quiet, milliseconds{0}};
  }
  return {Verdict::keep_waiting, std::min(patience.inactivity - quiet, patience.total - waited)};
}

}  // namespace dockbridge::sandbox
