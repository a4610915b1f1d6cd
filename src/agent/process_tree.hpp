#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace dockbridge::agent {

/// A process as /proc reports it.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = 0;               ///< as in proc(5): R, S, D, T, Z, ...
  std::uint64_t cpu_ticks = 0;  ///< including processes that it has reaped
  unsigned terminal = 0;        ///< controlling terminal, see `terminal_number`; 0: none
  pid_t group = 0;
  pid_t foreground_group = 0;  ///< of the terminal

  [[nodiscard]] bool is_dead() const { return state == 'Z' || state == 'X'; }
  [[nodiscard]] bool is_stopped() const { return state == 'T' || state == 't'; }
};

/// Number of a terminal in the form of /proc/PID/stat.
unsigned terminal_number(dev_t device);

/// The threads of a process; empty if it has ended.
std::vector<pid_t> threads_of(pid_t process);

/// All processes of the container that /proc shows.
std::vector<ProcessEntry> all_processes();

/// The live descendants of the calling process. It is their subreaper, so none escapes by setsid or a double fork.
/// Parents are listed before their children.
std::vector<ProcessEntry> descendants();

/// Sends `signal` to each descendant. Uses a pidfd and checks the ancestry after opening it, so a reused pid is never
/// signalled.
void signal_descendants(int signal);

}  // namespace dockbridge::agent
