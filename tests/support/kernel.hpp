#pragma once

#include <sys/socket.h>

#include "util/fd.hpp"

namespace dockbridge::test {

/// True if a socket can reject descriptors that are sent to it (Linux 6.16). Direct lines require that.
inline bool has_direct_lines() {
  constexpr int k_pass_rights = 83;
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int no = 0;
  return ::setsockopt(socket.get(), SOL_SOCKET, k_pass_rights, &no, sizeof no) == 0;
}

}  // namespace dockbridge::test
