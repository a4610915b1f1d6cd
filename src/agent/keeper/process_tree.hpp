#pragma once

#include <sys/types.h>

#include <cstddef>

namespace dockbridge::agent {

/// Sends `signal` to every descendant of the calling process, which is their subreaper, so that none escapes by
/// setsid or a double fork. Returns how many live descendants there were. Each is signalled through a pidfd whose
/// ancestry was checked after it was opened, so that a reused pid is never hit.
std::size_t signal_descendants(int signal);

}  // namespace dockbridge::agent
