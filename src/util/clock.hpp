#pragma once

#include <algorithm>
#include <chrono>

namespace dockbridge {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A point on the monotonic clock by which something has to be done.
class Deadline {
 public:
  static Deadline after(milliseconds span) { return Deadline(Clock::now() + span); }

  [[nodiscard]] Clock::time_point time() const { return m_time; }
  [[nodiscard]] milliseconds remaining() const {
    const auto left = std::chrono::ceil<milliseconds>(m_time - Clock::now());
    return std::max(left, milliseconds::zero());
  }
  [[nodiscard]] bool passed() const { return Clock::now() >= m_time; }
  /// Whichever of the two comes first.
  [[nodiscard]] Deadline capped(milliseconds span) const { return Deadline(std::min(m_time, Clock::now() + span)); }

 private:
  explicit Deadline(Clock::time_point time) : m_time(time) {}
  Clock::time_point m_time;
};

inline std::int64_t unix_milliseconds_now() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace dockbridge
