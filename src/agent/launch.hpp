#pragma once

#include <sys/types.h>

#include <array>

namespace dockbridge::agent {

// The roles of this program, beside `session`.
inline constexpr const char* k_keeper_role = "keeper";
inline constexpr const char* k_screen_role = "screen";
inline constexpr const char* k_files_role = "files";

struct Launch {
  int stdin_fd = -1;
  int stdout_fd = -1;                      ///< -1: nothing
  std::array<const char*, 5> arguments{};  ///< after the program's name; ends with the first null
};

/// Starts this program once more and returns when it runs. It belongs to the caller's parent, which reaps it: in the
/// end the container's runtime. -1 if there cannot be another process, or the caller is the container's first.
pid_t launch_beside(Launch what);
/// The same, but as a child of the caller.
pid_t launch_below(Launch what);

}  // namespace dockbridge::agent
