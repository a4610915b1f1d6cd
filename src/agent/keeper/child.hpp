#pragma once

#include <sys/types.h>

#include "agent/control/child_spec.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// Starts the command in a new session with no signal blocked. It inherits umask, OOM score and signal dispositions.
/// When this returns, the program runs. A missing directory or a program that cannot be executed is an error here and
/// not an exit code later.
Result<pid_t> start_child(const ChildSpec& spec);

}  // namespace dockbridge::agent
