#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "agent/keeper/process_tree.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

/// By thread: how long it has waited for a CPU so far, ready to run.
using CpuWaits = std::map<pid_t, std::chrono::nanoseconds>;

/// Of all threads of these processes, as far as the kernel tells.
CpuWaits cpu_waits(const std::vector<ProcessEntry>& processes);

/// How long a command could have run and had no CPU. What idles waits for none, however busy the machine is.
class Starvation {
 public:
  /// From now on. The first note after this only says where the counting begins.
  void forget();
  void note(Clock::time_point now, CpuWaits waits);
  /// What the thread that waited longest has waited between one note and the next, all together. What a thread waited
  /// that ended between two notes is not seen.
  [[nodiscard]] milliseconds so_far() const;

 private:
  std::optional<Clock::time_point> m_began;
  Clock::time_point m_last;
  CpuWaits m_waits;
  std::chrono::nanoseconds m_starved{0};
};

}  // namespace dockbridge::agent
