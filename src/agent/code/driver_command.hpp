#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/code/interpreter.hpp"
#include "error/error.hpp"
#include "wire/code_session.hpp"

namespace dockbridge::agent {

/// The program of a code session.
struct DriverCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  ///< in addition to that of the command
};

/// `directory` has the installed drivers. `shell` is the path of bash or sh; empty if the container has neither.
Result<DriverCommand> driver_command(const wire::CodeSession& session, const std::string& shell,
                                     const std::string& directory, const InterpreterSearch& search);

}  // namespace dockbridge::agent
