#include "agent/keeper/own_channel.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "util/fd.hpp"

namespace dockbridge::agent {

namespace {

constexpr int k_max_descriptors = 4096;

/// Number of descriptors of the process that are this pipe or socket. Stops at two.
int count_links(pid_t pid, const std::string& link) {
  const std::string path = fmt::format("/proc/{}/fd", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  int found = 0;
  int seen = 0;
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    std::array<char, 64> target{};
    const ssize_t length =
        ::readlinkat(::dirfd(directory.get()), static_cast<const char*>(item->d_name), target.data(), target.size());
    found += length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == link ? 1 : 0;
    if (found == 2 || ++seen == k_max_descriptors) {
      break;
    }
  }
  return found;
}

std::optional<unsigned> inode_in(std::string_view link) {
  const std::size_t begin = link.find('[') + 1;
  unsigned inode = 0;
  const auto read = std::from_chars(link.data() + begin, link.data() + link.size(), inode);
  return begin > 0 && read.ec == std::errc() ? std::optional(inode) : std::nullopt;
}

/// Inode of the peer of a Unix socket, from the kernel's socket diagnosis.
std::optional<unsigned> peer_of(unsigned inode) {
  struct {
    nlmsghdr head;
    unix_diag_req request;
  } question{};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = ~0U;
  question.request.udiag_ino = inode;
  question.request.udiag_show = UDIAG_SHOW_PEER;
  question.request.udiag_cookie[0] = ~0U;  // any
  question.request.udiag_cookie[1] = ~0U;
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  alignas(nlmsghdr) std::array<char, 1024> answer{};
  if (!socket || ::send(socket.get(), &question, sizeof question, 0) != sizeof question) {
    return std::nullopt;
  }
  const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
  const auto* head = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (got < 0 || !NLMSG_OK(head, static_cast<unsigned>(got)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      head->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) {
    return std::nullopt;
  }
  const char* at = answer.data() + NLMSG_SPACE(sizeof(unix_diag_msg));
  auto left = static_cast<int>(head->nlmsg_len - NLMSG_SPACE(sizeof(unix_diag_msg)));
  for (const auto* item = reinterpret_cast<const rtattr*>(at); RTA_OK(item, left); item = RTA_NEXT(item, left)) {
    if (item->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(item) == sizeof(unsigned)) {
      unsigned peer = 0;
      std::memcpy(&peer, RTA_DATA(item), sizeof peer);
      return peer;
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_connected_to_itself(pid_t pid, const std::string& link) {
  if (link.starts_with("pipe:")) {
    return count_links(pid, link) >= 2;
  }
  const auto inode = link.starts_with("socket:") ? inode_in(link) : std::nullopt;
  const auto peer = inode ? peer_of(*inode) : std::nullopt;
  return peer && count_links(pid, fmt::format("socket:[{}]", *peer)) > 0;
}

}  // namespace dockbridge::agent
