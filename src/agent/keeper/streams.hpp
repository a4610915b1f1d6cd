#pragma once

#include "agent/keeper/terminal.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Both ends of a command's streams: three pipes, or a terminal. The keeper's ends are non-blocking.
struct Streams {
  Fd in;
  Fd out;
  Fd err;  ///< empty on a terminal
  Fd child_in;
  Fd child_out;
  Fd child_err;
};

/// Needs no command, so it can be called in advance.
Result<Streams> open_pipes();
Result<Streams> open_on_terminal(const Terminal& terminal);

/// Whether a read would not block. False for -1.
bool is_readable(int fd);

}  // namespace dockbridge::agent
