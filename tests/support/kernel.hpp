#pragma once

#include <sys/socket.h>

#include "util/fd.hpp"

namespace dockbridge::test {

/// Whether a socket can be kept from being sent descriptors (Linux 6.16). Without that there are no direct lines.
inline bool has_direct_lines() {
  constexpr int k_pass_rights = 83;
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int no = 0;
  return ::setsockopt(socket.get(), SOL_SOCKET, k_pass_rights, &no, sizeof no) == 0;
}

}  // namespace dockbridge::test
