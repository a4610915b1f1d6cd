#pragma once

#include <cstdlib>

namespace dockbridge::test {

/// True in the long run (test.sh --full).
inline bool full_run() {
  return std::getenv("DOCKBRIDGE_FULL") != nullptr;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool k_is_sanitized = true;
#else
inline constexpr bool k_is_sanitized = false;
#endif
/// True if resident memory is meaningful. A sanitizer keeps freed memory, and needs some for itself.
inline constexpr bool k_memory_is_meaningful = !k_is_sanitized;

}  // namespace dockbridge::test
