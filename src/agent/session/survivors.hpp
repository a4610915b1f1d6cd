#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "agent/keeper/process_tree.hpp"

namespace dockbridge::agent {

/// The variable in a command's environment that holds the id of its process.
inline constexpr const char* k_process_variable = "DOCKBRIDGE_PROCESS";

// What is left of a process whose keeper was killed is nobody's child any more, but it still has that variable, or is
// below one that has. Not found is who has cleared its environment and left its parents, or belongs to another user.

/// The id of the process that `pid` belongs to, by its own environment or that of the nearest parent in `all`. Empty if
/// none of these environments has one, or can be read.
std::string process_of(pid_t pid, const std::vector<ProcessEntry>& all);

std::size_t count_survivors(const std::string& process);
/// How many there were.
std::size_t signal_survivors(const std::string& process, int signal);

}  // namespace dockbridge::agent
