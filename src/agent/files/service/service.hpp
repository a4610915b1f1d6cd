#pragma once

#include "util/fd.hpp"

namespace dockbridge::agent {

/// Runs a file worker: receives requests from `stream`, in the frames of the host, answers them one by one, and returns
/// when the stream ends. May block.
int serve_files(const Fd& stream, const char* state_path);

}  // namespace dockbridge::agent
