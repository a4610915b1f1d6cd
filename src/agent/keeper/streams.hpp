#pragma once

#include "agent/keeper/terminal.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Both ends of what a command reads and writes: three pipes, or a terminal. The keeper's ends do not block.
struct Streams {
  Fd in;
  Fd out;
  Fd err;  ///< none on a terminal
  Fd child_in;
  Fd child_out;
  Fd child_err;
};

/// Can be made before it is known what for.
Result<Streams> open_pipes();
Result<Streams> open_on_terminal(const Terminal& terminal);

}  // namespace dockbridge::agent
