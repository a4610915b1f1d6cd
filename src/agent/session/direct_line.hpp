#pragma once

#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::agent {

/// Connects to the socket that the host offers in a directory that both share, and gives it the key. Error `no_line`:
/// it cannot be reached, or another file is in its place.
Result<Fd> join_line(const wire::LineRequest& invitation);

}  // namespace dockbridge::agent
