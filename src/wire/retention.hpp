#pragma once

#include <chrono>
#include <cstdint>

namespace dockbridge::wire {

/// How long what finished processes left behind is kept: until one of these is exceeded, oldest first.
struct Retention {
  std::chrono::seconds age{3600};
  std::uint64_t count = 1000;
  std::uint64_t bytes = 2ULL * 1024 * 1024 * 1024;  ///< of stored output, that of running processes included
};

}  // namespace dockbridge::wire
