#include "agent/session/keeper_pool.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "agent/launch.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_idle_keepers = 4;

Result<KeeperLink> start_keeper(const std::string& state_path) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return fail(errno_error("Cannot connect to a keeper"));
  }
  KeeperLink link{Fd(sockets[0])};
  const Fd keepers_end(sockets[1]);
  const Launch keeper{keepers_end.get(), -1, {k_keeper_role, state_path.c_str()}};
  // It cannot be beside this process if that is the container's first.
  if (launch_beside(keeper) < 0 && (errno == EAGAIN || launch_below(keeper) < 0)) {
    return fail(ErrorCode::cannot_fork, "Cannot start a process: the container's process limit is reached");
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
    if (sent.error().code != ErrorCode::keeper_gone) {
      return fail(sent.error());
    }
  }
  auto link = start_keeper(m_state_path);
  const auto sent = link ? link->assign(assignment) : fail(link.error());
  return sent ? std::move(link) : fail(sent.error());
}

void KeeperPool::give_back(KeeperLink link) {
  if (m_idle.size() < k_max_idle_keepers) {
    m_idle.push_back(std::move(link));
  }
}

}  // namespace dockbridge::agent
