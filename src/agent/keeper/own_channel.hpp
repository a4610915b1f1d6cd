#pragma once

#include <sys/types.h>

#include <string>

namespace dockbridge::agent {

/// Whether a process holds both ends of a pipe or socket pair, which it then uses to wake itself up. `link` is one of
/// its descriptors as /proc names it: "pipe:[123]" or "socket:[123]". False if that cannot be seen.
bool is_connected_to_itself(pid_t pid, const std::string& link);

}  // namespace dockbridge::agent
