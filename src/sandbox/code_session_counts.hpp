#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sandbox/session_events.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge::sandbox {

/// Counts what this server has done with code sessions since it started. Any thread may call.
class CodeSessionCounts {
 public:
  /// The three of `CellStatus`, and a process that ended in its cell.
  static constexpr std::array<std::string_view, 4> k_outcomes = {"ok", "error", "interrupted", "died"};
  struct Sum {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  struct Values {
    std::array<std::uint64_t, k_outcomes.size()> cells{};  ///< by outcome
    Sum cell_time{};                                       ///< of cells that have ended by themselves
    Sum warm_starts{};
    Sum cold_starts{};
  };

  void count_cell(CellStatus status, double seconds) {
    const MutexLock lock(m_mutex);
    ++m_values.cells.at(static_cast<std::size_t>(status));
    ++m_values.cell_time.count;
    m_values.cell_time.seconds += seconds;
  }
  void count_died() {
    const MutexLock lock(m_mutex);
    ++m_values.cells.back();
  }
  /// An interpreter has reported that it is ready.
  void count_start(bool is_warm, Clock::duration took) {
    const MutexLock lock(m_mutex);
    Sum& sum = is_warm ? m_values.warm_starts : m_values.cold_starts;
    ++sum.count;
    sum.seconds += std::chrono::duration<double>(took).count();
  }
  [[nodiscard]] Values values() const {
    const MutexLock lock(m_mutex);
    return m_values;
  }

 private:
  mutable Mutex m_mutex;
  Values m_values GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::sandbox
