#pragma once

#include <string>
#include <vector>

#include "error/error.hpp"

namespace dockbridge::agent {

/// bash where there is one, else sh, else empty.
std::string find_shell();

/// The longest string the kernel takes as one argument, its final NUL included.
inline constexpr std::size_t k_max_argument_bytes = 128 * 1024;

/// The arguments that run `command`: as the one argument of the shell's -c; from `script_path`, which then has to
/// hold it, where it is too long for that; and without any shell only if it is a plain program with its words.
Result<std::vector<std::string>> command_arguments(const std::string& shell, const std::string& command,
                                                   const std::string& script_path);

/// Whether `command` has to be in a script file.
bool needs_script(const std::string& shell, const std::string& command);

}  // namespace dockbridge::agent
