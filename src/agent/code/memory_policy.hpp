#pragma once

#include <cstdint>

#include "agent/code/memory_use.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

/// Processes to end so that memory is freed.
enum class Relief : std::uint8_t { none, warm_interpreters, idle_session };

/// Decides when memory is scarce, and what is ended then: warm interpreters first, then idle sessions one by one. No
/// I/O, no clock.
class MemoryPolicy {
 public:
  [[nodiscard]] Clock::time_point next_check() const { return m_next_check; }
  /// Called at `next_check` or later.
  Relief check(const MemoryUse& use, bool has_warm, Clock::time_point now);

 private:
  Clock::time_point m_next_check{};
};

}  // namespace dockbridge::agent
