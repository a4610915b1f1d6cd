#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "error/error.hpp"

namespace dockbridge::agent {

/// An identity to take on before the command starts.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

/// Everything that is needed to start the command, prepared before the fork.
struct ChildSpec {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string cwd;
  std::optional<Identity> identity;
  int nice = 0;  ///< how much to give way to others
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool on_terminal = false;  ///< stdout is one, and becomes its controlling terminal
};

/// Starts the command in a session of its own, with no signal blocked; umask, OOM score and how signals are handled are
/// the caller's. When this returns, the program runs: a directory that does not exist, or a program that cannot be
/// executed, is an error here and not an exit code later.
Result<pid_t> start_child(const ChildSpec& spec);

}  // namespace dockbridge::agent
