#pragma once

#include <cstdlib>

namespace dockbridge::test {

/// Whether this is the long run (test.sh --full).
inline bool full_run() {
  return std::getenv("DOCKBRIDGE_FULL") != nullptr;
}

/// Whether resident memory says anything about the program: a sanitizer keeps what was freed, and needs some for
/// itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool k_memory_tells = false;
#else
inline constexpr bool k_memory_tells = true;
#endif

}  // namespace dockbridge::test
