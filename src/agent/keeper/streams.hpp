#pragma once

#include "agent/keeper/terminal.hpp"
#include "util/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Both ends of what a command reads and writes: three pipes, or a terminal.
struct Streams {
  Fd in;
  Fd out;
  Fd err;  ///< none on a terminal
  Fd child_in;
  Fd child_out;
  Fd child_err;

  /// From now on the keeper's ends do not block. Can wait until the command runs.
  void unblock() const;
};

/// On the terminal, if there is one. With an `input_file`, that is what the command reads, and the keeper has no end of
/// it.
Result<Streams> open_streams(const Terminal* terminal, Fd input_file);

}  // namespace dockbridge::agent
