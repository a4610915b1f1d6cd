#pragma once

#include <string>
#include <vector>

#include "agent/keeper/process_tree.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

/// What a command reads its input from, as /proc names it.
struct InputSource {
  std::string link;       ///< "pipe:[123]" or "/dev/pts/0"
  unsigned terminal = 0;  ///< as `terminal_number` gives it; 0: it is a pipe
};

/// Of a pipe, either end; of a terminal, the command's end.
InputSource input_source(int fd);

/// Whether one of these processes waits for this input: the kernel says which system call each of their threads is in,
/// and on which descriptors. `unknown` where that cannot be read (another user's process) or does not
/// tell: who reads it also listens for connections, or others of them work, or its system calls are those of a 32-bit
/// machine, which have other numbers.
wire::WaitsForInput waits_for_input(const std::vector<ProcessEntry>& processes, const InputSource& source);

}  // namespace dockbridge::agent
