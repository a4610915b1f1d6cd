#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace dockbridge::agent {

/// What /proc says of a process.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = 0;               ///< as in proc(5): R, S, D, T, Z, ...
  std::uint64_t cpu_ticks = 0;  ///< its own and of those it reaped
  unsigned terminal = 0;        ///< its controlling terminal, as `terminal_number` gives it; 0: none
  pid_t group = 0;
  pid_t foreground_group = 0;  ///< of that terminal

  [[nodiscard]] bool is_dead() const { return state == 'Z' || state == 'X'; }
  [[nodiscard]] bool is_stopped() const { return state == 'T' || state == 't'; }
};

/// A terminal in the form in which /proc tells a process's own.
unsigned terminal_number(dev_t device);

/// The threads of a process; none if it is gone.
std::vector<pid_t> threads_of(pid_t process);

/// All processes of the container, as far as /proc shows them.
std::vector<ProcessEntry> all_processes();

/// The live descendants of the calling process, which is their subreaper, so that none escapes by setsid or a double
/// fork. Parents come before their children.
std::vector<ProcessEntry> descendants();

/// Sends `signal` to each of them through a pidfd whose ancestry was checked after it was opened, so that a reused pid
/// is never hit.
void signal_descendants(int signal);

}  // namespace dockbridge::agent
