#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace dockbridge::agent {

/// Identity to switch to before the command starts.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

/// Everything that starting a command needs, prepared before the fork.
struct ChildSpec {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string cwd;
  std::optional<Identity> identity;
  int nice = 0;
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  int side_fd = -1;               ///< becomes descriptor 3; -1: none
  bool on_terminal = false;       ///< stdout becomes its controlling terminal
  bool dies_with_keeper = false;  ///< the kernel kills it if the keeper is killed
};

}  // namespace dockbridge::agent
