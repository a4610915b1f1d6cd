#pragma once

#include <algorithm>
#include <optional>

#include "util/clock.hpp"

namespace dockbridge::agent {

/// Decides when a command reaches its limit of run time, and when and how often a tree that is being ended is killed.
/// No I/O, no clock.
class EndTimers {
 public:
  static constexpr milliseconds k_kill_interval{50};

  void limit_runtime(Clock::time_point end) { m_runtime_ends = end; }
  [[nodiscard]] bool limits_runtime() const { return m_runtime_ends.has_value(); }
  /// Time in which nothing could run does not count as run time.
  void postpone(Clock::duration frozen) {
    if (m_runtime_ends) {
      *m_runtime_ends += frozen;
    }
  }
  void note_end() { m_runtime_ends.reset(); }
  /// Whether the run time is over. True once.
  bool take_timeout(Clock::time_point now) {
    const bool is_over = m_runtime_ends && now >= *m_runtime_ends;
    if (is_over) {
      m_runtime_ends.reset();
    }
    return is_over;
  }

  /// An earlier time that was given before stays.
  void kill_at(Clock::time_point when) { m_kill_at = m_kill_at ? std::min(*m_kill_at, when) : when; }
  [[nodiscard]] bool is_ending() const { return m_kill_at.has_value(); }
  /// Whether to kill the tree now. True repeatedly, because a killed process may have forked before.
  bool take_kill(Clock::time_point now) {
    const bool is_due = m_kill_at && now >= *m_kill_at;
    if (is_due) {
      m_kill_at = now + k_kill_interval;
    }
    return is_due;
  }

  /// Time of the next timeout or kill; nullopt if there is none.
  [[nodiscard]] std::optional<Clock::time_point> next() const {
    return m_runtime_ends && m_kill_at ? std::min(m_runtime_ends, m_kill_at) : m_kill_at ? m_kill_at : m_runtime_ends;
  }

 private:
  std::optional<Clock::time_point> m_runtime_ends;
  std::optional<Clock::time_point> m_kill_at;
};

}  // namespace dockbridge::agent
