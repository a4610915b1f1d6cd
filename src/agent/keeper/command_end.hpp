#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/control/packets.hpp"
#include "agent/record.hpp"
#include "util/clock.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// Reaps the processes of a command, determines how it ended, and records that in the journal.
class CommandEnd {
 public:
  /// Borrows the descriptor of the journal and the process id.
  CommandEnd(const Fd& journal, const std::string& process) : m_journal(journal), m_process(process) {}

  void begin(pid_t command) { m_command = command; }
  [[nodiscard]] pid_t pid() const { return m_command; }
  /// Reads how often the kernel has killed for memory, to compare with it at the end. Not for a command that has ended.
  void note_memory_kills();
  /// Keeps the first cause that is given while the command runs.
  void set_cause(wire::Cause cause);

  [[nodiscard]] wire::Phase phase() const { return m_phase; }
  [[nodiscard]] bool is_running() const { return m_phase == wire::Phase::running; }
  /// Reaps all processes that have ended. Returns the new phase; nullopt if it does not change. The caller stores all
  /// earlier output before it calls `enter` and `record`.
  std::optional<wire::Phase> reap();
  void enter(wire::Phase phase, const std::vector<TakenInput>& taken);

  /// Writes the end to the journal. After a failure, the caller retries at `next_record`.
  void record(Clock::time_point now);
  [[nodiscard]] bool is_unrecorded() const { return m_is_unrecorded; }
  [[nodiscard]] Clock::time_point next_record() const { return m_next_record; }

  /// Fills in phase, end, process id and the usage of reaped processes.
  void describe(StatePacket& state) const;

 private:
  [[nodiscard]] bool was_killed_for_memory() const;

  const Fd& m_journal;
  const std::string& m_process;
  pid_t m_command = 0;
  wire::Phase m_phase = wire::Phase::running;
  Status m_status;
  wire::Usage m_reaped;
  std::optional<std::uint64_t> m_earlier_memory_kills;
  bool m_is_unrecorded = false;
  Clock::time_point m_next_record;
};

}  // namespace dockbridge::agent
