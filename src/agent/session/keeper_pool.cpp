#include "agent/session/keeper_pool.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_most_idle = 4;
constexpr std::size_t k_launch_stack_bytes = 16 * 1024;

struct Launch {
  int link;
  const char* state_path;
};

/// Runs in the parent's memory until it is another program: system calls only.
int become_keeper(void* argument) {
  const auto& [link, state_path] = *static_cast<const Launch*>(argument);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(link, STDIN_FILENO);
  ::dup2(nothing >= 0 ? nothing : link, STDOUT_FILENO);
  ::dup2(nothing >= 0 ? nothing : link, STDERR_FILENO);
  const std::array<const char*, 4> arguments = {"dockbridge-agent", k_keeper_role, state_path, nullptr};
  ::execve("/proc/self/exe", const_cast<char* const*>(arguments.data()), environ);
  ::_exit(127);
}

/// Returns when the keeper's program runs. It belongs to this process's parent, the container's runtime, which reaps
/// it; where that cannot be (this process is the container's first), to this process.
pid_t launch(Launch what) {
  alignas(16) static std::array<char, k_launch_stack_bytes> stack;
  constexpr int k_like_vfork = CLONE_VM | CLONE_VFORK | SIGCHLD;
  char* top = stack.data() + stack.size();
  const pid_t pid = ::clone(become_keeper, top, k_like_vfork | CLONE_PARENT, &what);
  return pid >= 0 || errno == EAGAIN ? pid : ::clone(become_keeper, top, k_like_vfork, &what);
}

Result<KeeperLink> start_keeper(const std::string& state_path) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return fail(errno_error("cannot connect to a keeper"));
  }
  KeeperLink link{Fd(sockets[0])};
  const Fd keepers_end(sockets[1]);
  if (launch({keepers_end.get(), state_path.c_str()}) < 0) {
    return fail("cannot_fork", "cannot start a process in the container: its process limit is reached",
                "End some processes, or raise the container's pids limit");
  }
  return link;
}

}  // namespace

void KeeperPool::prepare() {
  if (auto link = start_keeper(m_state_path)) {
    give_back(std::move(*link));
  }
}

Result<KeeperLink> KeeperPool::hand_over(const Assignment& assignment) {
  while (!m_idle.empty()) {
    KeeperLink link = std::move(m_idle.back());
    m_idle.pop_back();
    const auto sent = link.assign(assignment);
    if (sent) {
      return link;
    }
    if (sent.error().code != k_keeper_gone) {
      return fail(sent.error());
    }
  }
  auto link = start_keeper(m_state_path);
  const auto sent = link ? link->assign(assignment) : fail(link.error());
  return sent ? std::move(link) : fail(sent.error());
}

void KeeperPool::give_back(KeeperLink link) {
  if (m_idle.size() < k_most_idle) {
    m_idle.push_back(std::move(link));
  }
}

}  // namespace dockbridge::agent
