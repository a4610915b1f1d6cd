#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace dockbridge {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A point in time on the monotonic clock.
class Deadline {
 public:
  static Deadline after(milliseconds span) { return Deadline(Clock::now() + span); }
  static Deadline at(Clock::time_point time) { return Deadline(time); }

  [[nodiscard]] Clock::time_point time() const { return m_time; }
  [[nodiscard]] milliseconds remaining() const {
    const auto left = std::chrono::ceil<milliseconds>(m_time - Clock::now());
    return std::max(left, milliseconds::zero());
  }
  [[nodiscard]] bool passed() const { return Clock::now() >= m_time; }
  /// The earlier of this deadline and `span` from now.
  [[nodiscard]] Deadline capped(milliseconds span) const { return Deadline(std::min(m_time, Clock::now() + span)); }

 private:
  explicit Deadline(Clock::time_point time) : m_time(time) {}
  Clock::time_point m_time;
};

/// For people only, because this clock can be set.
inline std::int64_t unix_milliseconds_now() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Time stamps of files. Any process can set them to any value, so they are clamped to the representable range.

/// Unix time, between about the years -6000 and 9999.
inline std::int64_t file_milliseconds(const timespec& time) {
  constexpr std::int64_t k_max_seconds = 253'402'300'799;
  return std::clamp<std::int64_t>(time.tv_sec, -k_max_seconds, k_max_seconds) * 1000 + time.tv_nsec / 1'000'000;
}
/// Unix time, between the years 1678 and 2262.
inline std::int64_t file_nanoseconds(const timespec& time) {
  constexpr std::int64_t k_max_seconds = 9'223'372'035;
  return std::clamp<std::int64_t>(time.tv_sec, -k_max_seconds, k_max_seconds) * 1'000'000'000 + time.tv_nsec;
}

/// Time since the start of the machine, suspension included.
inline std::int64_t uptime_milliseconds_now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

}  // namespace dockbridge
