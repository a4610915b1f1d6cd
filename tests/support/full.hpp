#pragma once

#include <cstdlib>

namespace dockbridge::test {

/// Whether this is the long run (test.sh --full).
inline bool full_run() {
  return std::getenv("DOCKBRIDGE_FULL") != nullptr;
}

}  // namespace dockbridge::test
