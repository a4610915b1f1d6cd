#include "agent/keeper/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace dockbridge::agent {

namespace {

constexpr int k_side_channel_fd = 3;

enum class Stage : int { none, identity, cwd, exec };

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const auto& text : strings) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs in the vforked child, in the parent's memory. Makes system calls only, and ends with exec or _exit.
[[noreturn]] void become(const ChildSpec& spec, pid_t keeper, char* const* argv, char* const* environment,
                         volatile Stage& stage, volatile int& error) {
  const auto exit_at = [&](Stage failed) {
    stage = failed;
    error = errno;
    ::_exit(127);
  };
  ::setsid();
  ::dup2(spec.stdin_fd, 0);
  ::dup2(spec.stdout_fd, 1);
  ::dup2(spec.stderr_fd, 2);
  if (spec.side_fd == k_side_channel_fd) {
    ::fcntl(spec.side_fd, F_SETFD, 0);  // dup2 would leave it close-on-exec
  } else if (spec.side_fd >= 0) {
    ::dup2(spec.side_fd, k_side_channel_fd);
  }
  if (spec.on_terminal) {
    ::ioctl(1, TIOCSCTTY, 0);  // input may come from a file
  }
  if (spec.nice > 0) {
    ::setpriority(PRIO_PROCESS, 0, spec.nice);
  }
  if (spec.identity) {
    const Identity& identity = *spec.identity;
    if (::setgroups(identity.groups.size(), identity.groups.data()) != 0 || ::setgid(identity.gid) != 0 ||
        ::setuid(identity.uid) != 0) {
      exit_at(Stage::identity);
    }
  }
  if (spec.dies_with_keeper) {  // after setuid, which resets this
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != keeper) {
      ::_exit(127);
    }
  }
  if (::chdir(spec.cwd.c_str()) != 0) {
    exit_at(Stage::cwd);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(argv[0], argv, environment);
  exit_at(Stage::exec);
  ::_exit(127);
}

Error start_error(const ChildSpec& spec, Stage stage, int error) {
  const std::string reason = std::strerror(error);
  switch (stage) {
    case Stage::identity:
      return {ErrorCode::cannot_switch_user, fmt::format("Cannot run as uid {}: {}", spec.identity->uid, reason)};
    case Stage::cwd:
      return {ErrorCode::bad_cwd, fmt::format("Cannot use working directory {}: {}", spec.cwd, reason),
              error == ENOENT ? "" : "Pass another cwd"};
    case Stage::exec:
    case Stage::none:
      break;
  }
  return {ErrorCode::cannot_execute, fmt::format("Cannot execute {}: {}", spec.argv.front(), reason),
          error == E2BIG ? "The command and its environment are too large. Write the data to a file first" : ""};
}

}  // namespace

Result<pid_t> start_child(const ChildSpec& spec) {
  const auto argv = c_strings(spec.argv);
  const auto environment = c_strings(spec.environment);
  volatile Stage stage = Stage::none;
  volatile int error = 0;
  const pid_t keeper = ::getpid();
  // vfork is the fastest way, and returns only when the program runs or could not be started.
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0) {
    become(spec, keeper, argv.data(), environment.data(), stage, error);  // NOLINT(clang-analyzer-unix.Vfork)
  }
  if (pid < 0) {
    const int number = errno;
    return fail(ErrorCode::cannot_fork, fmt::format("Cannot start a process: {}", std::strerror(number)),
                number == EAGAIN ? "" : "Check the memory of the container");
  }
  if (stage != Stage::none) {
    ::waitpid(pid, nullptr, 0);
    return fail(start_error(spec, stage, error));
  }
  return pid;
}

}  // namespace dockbridge::agent
