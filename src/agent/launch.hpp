#pragma once

#include <sys/types.h>

#include <array>

namespace dockbridge::agent {

// Roles of this program besides `session`.
inline constexpr const char* k_keeper_role = "keeper";
inline constexpr const char* k_screen_role = "screen";
inline constexpr const char* k_files_role = "files";

struct Launch {
  int stdin_fd = -1;
  int stdout_fd = -1;                      ///< -1: /dev/null
  std::array<const char*, 5> arguments{};  ///< after the program's name, up to the first null
};

/// Starts another process of this program and returns when it runs. Its parent is the caller's parent, usually the
/// container's runtime, which reaps it. -1 if no process can be created, or the caller is the container's first one.
pid_t launch_beside(Launch launch);
/// The same, as a child of the caller.
pid_t launch_below(Launch launch);

}  // namespace dockbridge::agent
