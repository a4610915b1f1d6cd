#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/control/packets.hpp"
#include "agent/session/pattern_watch.hpp"
#include "agent/session/silence.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::agent {

/// Decides when a wait for one process is over. The caller passes the time and the state of the process, and checks
/// ports. Only `search` does I/O.
class Wait {
 public:
  /// Action for the caller.
  enum class Step : std::uint8_t {
    none,
    query,  ///< ask the keeper for the state
    check_port,
    time_out,  ///< conclude the wait with WaitOutcome::nothing
    reply,     ///< reply with the concluded outcome, because the keeper does not answer
  };

  /// Error `bad_pattern`.
  static Result<Wait> make(const wire::WaitTerms& terms, Clock::time_point now);

  /// Matches new output of the process against the pattern, if there is one.
  Result<void> search(int directory_fd, const std::string& process);
  /// Whether there is output that was not matched yet.
  [[nodiscard]] bool is_behind() const { return m_is_behind; }
  /// Reason why the wait is over, by the latest report of the keeper; nullopt if it is not over.
  [[nodiscard]] std::optional<wire::WaitOutcome> outcome(bool has_keeper, const std::optional<StatePacket>& last) const;
  /// Schedules the next check for silence by a report of the keeper.
  void schedule_idle_check(const StatePacket& state, Clock::time_point now);

  /// Returns the action that is due, and schedules the next check of the same kind.
  Step next_step(Clock::time_point now);
  [[nodiscard]] Clock::time_point next_check(Clock::time_point now) const;
  /// Ends the wait with the next report of the keeper, which may be newer than the last one. A keeper that does not
  /// report, for example because it was stopped by a signal, is not waited for long.
  void conclude(wire::WaitOutcome outcome, Clock::time_point now);
  /// The outcome that `conclude` was called with.
  [[nodiscard]] std::optional<wire::WaitOutcome> concluded() const { return m_concluded; }

  [[nodiscard]] std::optional<std::uint16_t> port() const { return m_port; }
  /// Counts the delay for a port of another process from the start of the process that is waited for. A call that
  /// reports progress waits in many slices.
  void shorten_port_delay(milliseconds age);
  /// Whether it is late enough to report that another process listens on the port.
  [[nodiscard]] bool accepts_foreign_port(Clock::time_point now) const { return now >= m_earliest_foreign_port; }
  /// Schedules the next check after another process was found on the port.
  void postpone_port_check(Clock::time_point now);

  [[nodiscard]] std::uint64_t carry() const { return m_carry; }
  [[nodiscard]] const std::optional<PatternWatch>& pattern() const { return m_pattern; }
  [[nodiscard]] bool needs_growth() const { return m_known || m_known_side || m_pattern; }
  [[nodiscard]] bool heeds_starvation() const { return m_idle && m_idle->heeds_starvation(); }
  /// Events that the keeper must watch for: k_watch_input, k_watch_answer.
  [[nodiscard]] std::uint32_t watched() const {
    return (m_needs_input ? k_watch_input : 0) | (m_needs_answer ? k_watch_answer : 0);
  }

 private:
  Clock::time_point m_deadline;
  std::uint64_t m_carry = 0;
  std::optional<wire::Offsets> m_known;  ///< waits for more output than this
  std::optional<std::uint64_t> m_known_side;
  std::optional<PatternWatch> m_pattern;
  std::optional<std::uint16_t> m_port;
  std::optional<SilenceLimit> m_idle;
  bool m_needs_input = false;
  bool m_needs_answer = false;  ///< waits for the answer to the latest input, see StatePacket::answered
  bool m_needs_closed = false;  ///< waits for the end of everything that the command started

  Clock::time_point m_next_port_check;
  Clock::time_point m_earliest_foreign_port;
  Clock::time_point m_next_idle_check;
  bool m_is_behind = false;
  std::optional<wire::WaitOutcome> m_concluded;
};

}  // namespace dockbridge::agent
