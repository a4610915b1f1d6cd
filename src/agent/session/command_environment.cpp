#include "agent/session/command_environment.hpp"

#include <unistd.h>

#include <cstdlib>

#include "agent/session/survivors.hpp"

namespace dockbridge::agent {

namespace {

/// Kind of terminal that the screen process emulates.
constexpr const char* k_terminal_kind = "xterm-256color";

}  // namespace

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& other) { return other.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

std::string variable_in(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

std::vector<std::string> environment_with(const std::string& shell, const std::optional<Account>& account,
                                          const wire::Command& command) {
  std::vector<std::string> entries;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(k_process_variable)) {
      entries.emplace_back(*variable);
    }
  }
  if (!shell.empty() && std::getenv("SHELL") == nullptr) {
    set_variable(entries, "SHELL", shell);
  }
  if (command.terminal) {
    set_variable(entries, "TERM", k_terminal_kind);
  }
  if (account) {
    set_variable(entries, "HOME", account->home);
    set_variable(entries, "USER", account->name);
    set_variable(entries, "LOGNAME", account->name);
  }
  for (const auto& [name, value] : command.environment) {
    set_variable(entries, name, value);
  }
  return entries;
}

}  // namespace dockbridge::agent
