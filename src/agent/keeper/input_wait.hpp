#pragma once

#include <string>
#include <vector>

#include "agent/keeper/process_tree.hpp"
#include "util/clock.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// What a command reads its input from, as /proc names it.
struct InputSource {
  std::string link;              ///< "pipe:[123]" or "/dev/pts/0"
  unsigned terminal = 0;         ///< as `terminal_number` gives it; 0: it is a pipe
  bool is_secret = false;        ///< the terminal passes on lines and does not echo them: a password is read
  milliseconds read_timeout{0};  ///< after which a read from the terminal returns without a key; 0: it does not
};

/// Of a pipe, either end; of a terminal, the command's end.
InputSource input_source(int fd);

/// How a command waits for its input.
struct InputWait {
  wire::WaitsForInput waits = wire::WaitsForInput::no;
  /// It would be `yes` if the reader's event loop had no timer, which may be the program's work or its runtime's tick.
  bool has_timer = false;
  /// The event loop has a timer of the runtime, behind which there may be a longer one of the program.
  bool may_hide_timer = false;
  milliseconds timeout{0};  ///< after which the reader does something without input; 0: it does not
  bool is_alone = false;    ///< every other process is an ancestor of the one that reads
  /// It is `unknown`, but the terminal takes a password and one of the processes that may not be inspected sleeps. It
  /// need not have that terminal: su starts a command in a session of its own.
  bool may_ask_secret = false;
};

/// Whether one of these processes waits for this input. The kernel reports which system call each thread is in, and on
/// which descriptors. `unknown` if that cannot be read (a set-user-ID program), or does not decide it: the reader also
/// listens for connections or has a timer, another process of the tree works, or the system calls have the numbers of a
/// 32-bit machine. Root examines another user's process as that user.
InputWait waits_for_input(const std::vector<ProcessEntry>& processes, const InputSource& source);

}  // namespace dockbridge::agent
