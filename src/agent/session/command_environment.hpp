#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/session/identity.hpp"
#include "wire/wait_messages.hpp"

namespace dockbridge::agent {

// Environments are lists of NAME=value.

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value);
/// "" if the variable is not set.
std::string variable_in(const std::vector<std::string>& environment, std::string_view name);

/// This process's environment, overridden by the variables of `account` and then by those of `command`. SHELL is set as
/// in a terminal. Without it, bash looks it up in the user database each time it starts.
std::vector<std::string> environment_with(const std::string& shell, const std::optional<Account>& account,
                                          const wire::Command& command);

}  // namespace dockbridge::agent
