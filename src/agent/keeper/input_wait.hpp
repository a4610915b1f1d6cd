#pragma once

#include <string>
#include <vector>

#include "agent/process_tree.hpp"
#include "util/clock.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// The input of a command, as /proc reports it.
struct InputSource {
  std::string link;              ///< "pipe:[123]" or "/dev/pts/0"
  unsigned terminal = 0;         ///< see `terminal_number`; 0: it is a pipe
  bool is_secret = false;        ///< the terminal reads lines without echo, as for a password
  milliseconds read_timeout{0};  ///< of a read from the terminal; 0: no timeout
};

/// `fd` is either end of a pipe, or the command's end of a terminal.
InputSource input_source(int fd);

/// Result of examining whether a command waits for its input.
struct InputWait {
  wire::WaitsForInput waits = wire::WaitsForInput::no;
  /// `waits` would be `yes` if the reader's event loop had no timer. The timer may be work or a tick of the runtime.
  bool has_timer = false;
  /// The event loop has a timer of the runtime, which may hide a longer one of the program.
  bool may_hide_timer = false;
  milliseconds timeout{0};  ///< after which the reader continues without input; 0: no timeout
  bool is_alone = false;    ///< every other process is an ancestor of the reader
  /// `waits` is `unknown`, but the terminal reads a password and a process that cannot be examined sleeps. That process
  /// need not have the terminal: su starts a command in a new session.
  bool may_ask_secret = false;
};

/// Determines whether one of these processes waits for this input. The kernel reports the system call in which each
/// thread is blocked, and its descriptors. The result is `unknown` if that cannot be read (a set-user-ID program), or
/// is not decisive: the reader also listens for connections or has a timer, another process of the tree works, or the
/// process uses 32-bit system calls. Root examines another user's process as that user.
InputWait waits_for_input(const std::vector<ProcessEntry>& processes, const InputSource& source);

}  // namespace dockbridge::agent
