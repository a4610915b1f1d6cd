#include "agent/launch.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_stack_bytes = 16 * 1024;

/// Runs in the parent's memory until it executes the program. Makes system calls only.
int execute_program(void* argument) {
  const auto& launch = *static_cast<const Launch*>(argument);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int fallback = null >= 0 ? null : launch.stdin_fd;
  ::dup2(launch.stdin_fd, STDIN_FILENO);
  ::dup2(launch.stdout_fd >= 0 ? launch.stdout_fd : fallback, STDOUT_FILENO);
  ::dup2(fallback, STDERR_FILENO);
  std::array<const char*, 7> arguments = {"dockbridge-agent"};
  std::copy(launch.arguments.begin(), launch.arguments.end(), arguments.begin() + 1);
  ::execve("/proc/self/exe", const_cast<char* const*>(arguments.data()), environ);
  ::_exit(127);
}

pid_t clone_with(Launch launch, int flags) {
  alignas(16) static std::array<char, k_stack_bytes> stack;
  return ::clone(execute_program, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD | flags, &launch);
}

}  // namespace

pid_t launch_beside(Launch launch) {
  return clone_with(launch, CLONE_PARENT);
}

pid_t launch_below(Launch launch) {
  return clone_with(launch, 0);
}

}  // namespace dockbridge::agent
