#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "agent/control/packets.hpp"
#include "agent/keeper/input_wait.hpp"
#include "agent/keeper/links.hpp"
#include "agent/keeper/output_end.hpp"
#include "agent/keeper/starvation.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

/// State of a process tree at one moment, as /proc reports it.
struct TreeState {
  InputWait input_wait;
  bool is_paused = false;  ///< the command was stopped by a signal
  std::uint32_t processes = 0;
  wire::Usage used;                     ///< by live processes
  std::optional<CpuWaits> cpu_waits{};  ///< nullopt: not measured
};

/// Tracks a running command: when it last had output or input, whether it waits for input, and when its process tree is
/// examined next. Examinations become rarer while nothing happens. No I/O, no clock.
class ActivityMonitor {
 public:
  /// Examinations are more frequent while one of `links` watches for an answer.
  explicit ActivityMonitor(const Links& links) : m_links(links) {}

  void begin(Clock::time_point now);
  void note_activity(Clock::time_point now);
  void note_output(std::string_view bytes, Clock::time_point now);
  /// Does not count as activity by itself.
  void note_input(std::string_view bytes) { m_output_end.note_input(bytes); }
  void note_end();

  [[nodiscard]] Clock::time_point next_examination() const { return m_last_examination + m_interval; }
  /// Delays the next examination by time in which the container was frozen.
  void postpone(Clock::duration frozen) { m_last_examination += frozen; }
  /// Restarts with the shortest interval if a link watches for an answer.
  void restart_intervals();
  void note_examination(Clock::time_point now, TreeState tree);

  /// Events that are true now: k_watch_input, k_watch_answer.
  [[nodiscard]] std::uint32_t events() const;
  /// Fills in the fields that this class knows, and adds to `state.used` what live processes have used.
  void describe(StatePacket& state, Clock::time_point now) const;

 private:
  [[nodiscard]] milliseconds first_interval() const;

  const Links& m_links;
  Clock::time_point m_last_activity;
  Starvation m_starvation;  // since then
  OutputEnd m_output_end;
  Clock::time_point m_last_examination;
  milliseconds m_interval{0};
  wire::WaitsForInput m_waits_for_input = wire::WaitsForInput::no;
  bool m_has_answered = false;
  bool m_is_paused = false;
  std::uint32_t m_processes = 0;
  wire::Usage m_used;
};

}  // namespace dockbridge::agent
