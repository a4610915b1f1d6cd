#pragma once

#include <cstddef>
#include <optional>

#include "util/clock.hpp"

namespace dockbridge::agent {

/// Decides when the next warm interpreter is started. No I/O, no clock.
class WarmPolicy {
 public:
  /// A Python session was started. Its reply is sent later, see `note_reply`. `count` is the wanted number.
  void note_start(std::size_t count);
  void note_reply(Clock::time_point now);
  /// An interpreter was started, or could not be started.
  void note_launch(Clock::time_point now);
  /// All warm interpreters were dropped to free memory. None is started for a while.
  void note_pressure(Clock::time_point now);

  /// Time of the next start if there are `existing` warm interpreters; nullopt if none is to be started.
  [[nodiscard]] std::optional<Clock::time_point> next_launch(std::size_t existing) const;

 private:
  std::size_t m_wanted = 0;
  bool m_awaits_reply = false;
  Clock::time_point m_earliest{};
};

}  // namespace dockbridge::agent
