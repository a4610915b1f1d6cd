#include "agent/launch.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_stack_bytes = 16 * 1024;

/// Runs in the parent's memory until it is another program: system calls only.
int become_other(void* argument) {
  const auto& what = *static_cast<const Launch*>(argument);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int otherwise = nothing >= 0 ? nothing : what.stdin_fd;
  ::dup2(what.stdin_fd, STDIN_FILENO);
  ::dup2(what.stdout_fd >= 0 ? what.stdout_fd : otherwise, STDOUT_FILENO);
  ::dup2(otherwise, STDERR_FILENO);
  std::array<const char*, 7> arguments = {"dockbridge-agent"};
  std::copy(what.arguments.begin(), what.arguments.end(), arguments.begin() + 1);
  ::execve("/proc/self/exe", const_cast<char* const*>(arguments.data()), environ);
  ::_exit(127);
}

pid_t launch(Launch what, int flags) {
  alignas(16) static std::array<char, k_stack_bytes> stack;
  return ::clone(become_other, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD | flags, &what);
}

}  // namespace

pid_t launch_beside(Launch what) {
  return launch(what, CLONE_PARENT);
}

pid_t launch_below(Launch what) {
  return launch(what, 0);
}

}  // namespace dockbridge::agent
