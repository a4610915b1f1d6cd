#pragma once

#include <string>
#include <vector>

#include "error/error.hpp"

namespace dockbridge::agent {

/// The path of bash, else of sh; empty if the container has neither.
std::string find_shell();

/// Longest argument that the kernel accepts, including its final NUL.
inline constexpr std::size_t k_max_argument_bytes = 128 * 1024;

/// The arguments that run `command`: the shell with -c, or with `script_path` if the command is too long for an
/// argument. Without a shell, the command must be a program with plain words.
Result<std::vector<std::string>> command_arguments(const std::string& shell, const std::string& command,
                                                   const std::string& script_path);

/// Whether `command` must be stored as a script file.
bool needs_script(const std::string& shell, const std::string& command);

}  // namespace dockbridge::agent
