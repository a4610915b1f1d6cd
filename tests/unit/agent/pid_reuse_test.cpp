#include <doctest/doctest.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "agent/process_tree.hpp"
#include "agent/session/survivors.hpp"
#include "util/clock.hpp"

using namespace dockbridge;

// A process of a command ends just before it is signalled, and an unrelated process gets its pid. The test forces this
// race: it uses a new pid namespace, where a process can be created with any pid, and stops the signaller at the
// critical moment.

namespace {

enum class Signaller { keeper, session };
enum class ReuseMoment { before_it_is_opened, after_it_was_opened, before_it_is_signalled };

constexpr const char* k_reused_process = "proc_1_reused";
/// Blocked by all processes, so that it stays pending in its receiver.
constexpr int k_signal = SIGUSR1;

// Outcome, as the exit status of the process that has checked.
constexpr int k_was_reused = 1;
constexpr int k_command_was_signalled = 2;
constexpr int k_stranger_was_signalled = 4;
constexpr int k_gave_up = 64;

[[noreturn]] void give_up(const char* where) {
  ::perror(where);
  ::_exit(k_gave_up);
}

pid_t fork_or_give_up() {
  const pid_t pid = ::fork();
  if (pid < 0) {
    give_up("fork");
  }
  return pid;
}

bool has_been_signalled(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("ShdPnd:")) {
      return ((std::strtoull(line.c_str() + 7, nullptr, 16) >> (k_signal - 1)) & 1U) != 0;
    }
  }
  give_up("no such process");
}

/// The shell of a command, which reports its pid and that of its child, and reaps the child.
void start_command(int tells) {
  if (fork_or_give_up() == 0) {
    const std::string variable = fmt::format("{}={}", agent::k_process_variable, k_reused_process);
    const std::array<const char*, 3> environment = {"PATH=/usr/bin:/bin", variable.c_str(), nullptr};
    ::dup2(tells, STDOUT_FILENO);
    ::execle("/bin/bash", "bash", "-c", "exec 2> /dev/null; sleep 600 & echo $$ $!; wait; sleep 600; exit", nullptr,
             environment.data());
    ::_exit(127);
  }
}

/// Creates an unrelated process with this pid as soon as that is free.
void start_stranger(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&pid);
  arguments.set_tid_size = 1;
  const auto deadline = Deadline::after(seconds(10));
  long made = -1;
  do {
    made = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  } while (made < 0 && errno == EEXIST && !deadline.passed());
  if (made < 0) {
    give_up("clone3");
  }
  while (made == 0) {
    ::pause();
  }
}

/// Traces the system calls of a signaller.
class Observer {
 public:
  Observer(pid_t victim, ReuseMoment moment) : m_victim(victim), m_moment(moment) {}

  /// Whether the critical moment is reached.
  bool has_come(const __ptrace_syscall_info& call) {
    if (call.op == PTRACE_SYSCALL_INFO_EXIT) {
      const bool has_opened = std::exchange(m_opens, false);
      m_has_opened = m_has_opened || has_opened;
      return has_opened && m_moment == ReuseMoment::after_it_was_opened;
    }
    m_opens = call.entry.nr == SYS_pidfd_open && call.entry.args[0] == static_cast<std::uint64_t>(m_victim);
    const bool signals = call.entry.nr == SYS_pidfd_send_signal || call.entry.nr == SYS_kill;
    return (m_opens && m_moment == ReuseMoment::before_it_is_opened) ||
           (m_has_opened && signals && m_moment == ReuseMoment::before_it_is_signalled);
  }

 private:
  pid_t m_victim;
  ReuseMoment m_moment;
  bool m_opens = false;
  bool m_has_opened = false;
};

/// Resumes a stopped signaller up to the critical moment, replaces the victim by a stranger with its pid, and resumes
/// it to its end. Returns whether the moment was reached.
bool pass_on_pid(pid_t signaller, pid_t victim, ReuseMoment moment) {
  constexpr int k_stopped_at_call = SIGTRAP | 0x80;
  Observer observer(victim, moment);
  bool done = false;
  int status = 0;
  while (::waitpid(signaller, &status, 0) == signaller && WIFSTOPPED(status)) {
    __ptrace_syscall_info call{};
    if (WSTOPSIG(status) != k_stopped_at_call) {
      ::ptrace(PTRACE_SETOPTIONS, signaller, nullptr, PTRACE_O_TRACESYSGOOD);
    } else if (!done && ::ptrace(PTRACE_GET_SYSCALL_INFO, signaller, sizeof call, &call) > 0 &&
               observer.has_come(call)) {
      ::kill(victim, SIGKILL);
      start_stranger(victim);
      done = true;
    }
    ::ptrace(PTRACE_SYSCALL, signaller, nullptr, nullptr);
  }
  return done && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The first process of the namespace. All others end with it.
[[noreturn]] void rule(Signaller who, ReuseMoment moment) {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", 0, nullptr) != 0) {
    give_up("mount");
  }
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, k_signal);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) {
    give_up("pipe");
  }
  if (who == Signaller::session) {
    start_command(pipe[1]);
  }
  const pid_t signaller = fork_or_give_up();
  if (signaller == 0) {
    if (who == Signaller::keeper) {
      ::prctl(PR_SET_CHILD_SUBREAPER, 1);
      start_command(pipe[1]);
    }
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    if (who == Signaller::keeper) {
      agent::signal_descendants(k_signal);
    } else {
      agent::signal_survivors(k_reused_process, k_signal);
    }
    ::_exit(0);
  }
  pid_t command = 0;
  pid_t victim = 0;
  std::array<char, 64> told{};
  if (::read(pipe[0], told.data(), told.size() - 1) <= 0 || std::sscanf(told.data(), "%d %d", &command, &victim) != 2) {
    give_up("the command");
  }
  const bool was_reused = pass_on_pid(signaller, victim, moment);
  ::_exit((was_reused ? k_was_reused : 0) | (has_been_signalled(command) ? k_command_was_signalled : 0) |
          (was_reused && has_been_signalled(victim) ? k_stranger_was_signalled : 0));
}

int outcome_of(Signaller who, ReuseMoment moment) {
  const pid_t outside = ::fork();
  if (outside == 0) {
    const int user = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (::unshare(user | CLONE_NEWPID | CLONE_NEWNS) != 0) {
      give_up("unshare");
    }
    const pid_t first = fork_or_give_up();
    if (first == 0) {
      rule(who, moment);
    }
    int status = 0;
    ::_exit(::waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : k_gave_up);
  }
  int status = 0;
  REQUIRE(::waitpid(outside, &status, 0) == outside);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("process tree: a reused pid is not signalled") {
  for (const Signaller who : {Signaller::keeper, Signaller::session}) {
    for (const ReuseMoment moment :
         {ReuseMoment::before_it_is_opened, ReuseMoment::after_it_was_opened, ReuseMoment::before_it_is_signalled}) {
      CAPTURE(static_cast<int>(who));
      CAPTURE(static_cast<int>(moment));
      CHECK(outcome_of(who, moment) == (k_was_reused | k_command_was_signalled));
    }
  }
}
