#include "agent/code/memory_policy.hpp"

namespace dockbridge::agent {

namespace {

constexpr seconds k_check_interval{1};
/// A session that was ended has this time to free its memory before another one is ended.
constexpr seconds k_relief_time{3};

/// Above 95 %.
bool is_scarce(const MemoryUse& use) {
  return use.used > use.limit - use.limit / 20;
}

}  // namespace

Relief MemoryPolicy::check(const MemoryUse& use, bool has_warm, Clock::time_point now) {
  m_next_check = now + k_check_interval;
  if (!is_scarce(use)) {
    return Relief::none;
  }
  if (has_warm) {
    return Relief::warm_interpreters;
  }
  m_next_check = now + k_relief_time;
  return Relief::idle_session;
}

}  // namespace dockbridge::agent
