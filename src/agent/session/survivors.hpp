#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "agent/process_tree.hpp"

namespace dockbridge::agent {

/// The variable in a command's environment that holds the id of its process.
inline constexpr const char* k_process_variable = "DOCKBRIDGE_PROCESS";

// The system processes of a process whose keeper was killed have lost their parent, but they still have this variable
// or an ancestor that has it. They are not found if they have cleared their environment and left their ancestors, or
// belong to another user.

/// The id of the process that `pid` belongs to, by its own environment or that of its nearest ancestor in `all`. Empty
/// if none of these environments is readable and has the variable.
std::string process_of(pid_t pid, const std::vector<ProcessEntry>& all);

std::size_t count_survivors(const std::string& process);
/// Returns the number of signalled processes.
std::size_t signal_survivors(const std::string& process, int signal);

}  // namespace dockbridge::agent
