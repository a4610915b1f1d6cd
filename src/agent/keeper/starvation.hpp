#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "agent/process_tree.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

/// Total time that each thread has been ready to run and waited for a CPU.
using CpuWaits = std::map<pid_t, std::chrono::nanoseconds>;

/// Reads the times of all threads of these processes. Omits threads that the kernel does not report.
CpuWaits cpu_waits(const std::vector<ProcessEntry>& processes);

/// Time in which a command could have run and had no CPU. An idle command does not wait for one, even on a busy
/// machine.
class Starvation {
 public:
  /// Starts at 0. The first note after this is the baseline.
  void reset();
  void note(Clock::time_point now, CpuWaits waits);
  /// Sum, over the intervals between two notes, of the longest wait of a thread in the interval. Does not include
  /// threads that ended within an interval.
  [[nodiscard]] milliseconds total() const;

 private:
  std::optional<Clock::time_point> m_began;
  Clock::time_point m_last;
  CpuWaits m_waits;
  std::chrono::nanoseconds m_starved{0};
};

}  // namespace dockbridge::agent
