#pragma once

#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::agent {

/// Connects to the socket that the host has created in a shared directory, and sends it the key. Error `no_line` if the
/// socket cannot be reached or another file is in its place.
Result<Fd> join_line(const wire::LineRequest& invitation);

}  // namespace dockbridge::agent
