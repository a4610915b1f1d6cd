#pragma once

#include "util/fd.hpp"

namespace dockbridge::agent {

/// The role of this program that does file work for a session: takes requests from `stream` in the frames of the stream
/// between host and session, answers them one after the other, and returns when the stream ends. May block.
int serve_files(const Fd& stream, const char* state_path);

}  // namespace dockbridge::agent
