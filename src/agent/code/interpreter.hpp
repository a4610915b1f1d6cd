#pragma once

#include <string>
#include <string_view>

#include "error/error.hpp"

namespace dockbridge::agent {

/// Inputs of the search for an interpreter.
struct InterpreterSearch {
  std::string search_path;  ///< PATH of the session's process
  std::string cwd;          ///< relative paths count from here
  std::string home;         ///< for a leading "~"
};

/// Path of the Python interpreter. `wanted` is a program, the directory of a virtual environment, or a name in PATH;
/// empty means python3, or python. Error `no_python` with the next step.
Result<std::string> find_python(const std::string& wanted, const InterpreterSearch& search);

/// The command that installs Python in the distribution that /etc/os-release describes; empty if it is unknown.
std::string python_install_command(std::string_view os_release);

}  // namespace dockbridge::agent
