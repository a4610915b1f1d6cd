#pragma once

#include "util/fd.hpp"

namespace dockbridge::agent {

/// The life of a keeper process: looks after one command after another as the session at the other end of `link` gives
/// them to it, and keeps what comes of it in the state directory. Ends when the session is gone and nothing is left to
/// look after.
int serve_as_keeper(Fd link, const char* state_path);

}  // namespace dockbridge::agent
