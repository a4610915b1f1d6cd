#pragma once

#include <chrono>
#include <cstdint>

namespace dockbridge::wire {

/// Limits on the records and output of finished processes. The oldest are removed when a limit is exceeded.
struct Retention {
  std::chrono::seconds age{3600};
  std::uint64_t count = 1000;
  std::uint64_t bytes = 2ULL * 1024 * 1024 * 1024;  ///< of stored output, including that of running processes
};

}  // namespace dockbridge::wire
