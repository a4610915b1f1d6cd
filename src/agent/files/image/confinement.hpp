#pragma once

namespace dockbridge::agent {

/// Forbids this process every system call but exit; any other one kills it. Works under an existing seccomp filter,
/// such as Docker's. Returns false if the kernel refuses; nothing is forbidden then.
bool forbid_system_calls();

}  // namespace dockbridge::agent
