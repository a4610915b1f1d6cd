#pragma once

#include <cstdlib>

namespace dockbridge::test {

/// True in the long run (test.sh --full).
inline bool full_run() {
  return std::getenv("DOCKBRIDGE_FULL") != nullptr;
}

/// True if resident memory is meaningful. A sanitizer keeps freed memory, and needs some for itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool k_memory_is_meaningful = false;
#else
inline constexpr bool k_memory_is_meaningful = true;
#endif

}  // namespace dockbridge::test
