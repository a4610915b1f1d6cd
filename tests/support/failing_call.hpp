#pragma once

#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dockbridge::test {

/// A system call that fails if one of its arguments is from `least` to `most`.
struct FailingCall {
  int number;  ///< SYS_...
  int error;   ///< errno
  unsigned argument = 0;
  std::uint32_t least = 0;
  std::uint32_t most = UINT32_MAX;
};

/// Applies from now on, in this process and its children.
inline bool begin_to_fail(const FailingCall& call) {
  const auto argument =
      static_cast<std::uint32_t>(offsetof(seccomp_data, args) + call.argument * sizeof(std::uint64_t));
  std::array<sock_filter, 7> program = {
      sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))),
      sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call.number), 0, 4)),
      sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument)),
      sock_filter(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, call.least, 0, 2)),
      sock_filter(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, call.most, 1, 0)),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(call.error))),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW))};
  const sock_fprog whole{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

/// Runs a function in a separate process, which then ends as if killed. Returns the result of the function.
inline bool in_a_child(const std::function<bool()>& act) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    ::_exit(act() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

inline bool while_failing(const FailingCall& call, const std::function<bool()>& act) {
  return in_a_child([&] { return begin_to_fail(call) && act(); });
}

}  // namespace dockbridge::test
