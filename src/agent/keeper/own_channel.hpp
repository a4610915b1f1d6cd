#pragma once

#include <sys/types.h>

#include <string>

namespace dockbridge::agent {

/// Whether a process has both ends of a pipe or socket pair, which it uses to wake itself up. `link` is the target of
/// one of its descriptors in /proc: "pipe:[123]" or "socket:[123]". False if that cannot be determined.
bool is_connected_to_itself(pid_t pid, const std::string& link);

}  // namespace dockbridge::agent
