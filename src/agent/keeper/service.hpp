#pragma once

#include "util/fd.hpp"

namespace dockbridge::agent {

/// Runs a keeper process. Receives one command after another from the session at the other end of `link`, and stores
/// output and records in the state directory. Returns when the session has ended and no process is left.
int serve_as_keeper(Fd link, const char* state_path);

}  // namespace dockbridge::agent
