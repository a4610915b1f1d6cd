#pragma once

namespace dockbridge::agent {

/// Forbids this process every system call but exit; any other one kills it. Works under an existing seccomp filter, as
/// Docker installs one. False if the kernel refuses: then nothing is forbidden.
bool forbid_system_calls();

}  // namespace dockbridge::agent
