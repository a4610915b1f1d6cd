#pragma once

#include <sys/un.h>

#include <string>

namespace dockbridge {

/// The address of a socket in a directory. It refers to the descriptor, because the path may be too long for an
/// address.
sockaddr_un socket_address(int directory_fd, const std::string& name);
/// The address of a socket that was opened with O_PATH. It stays valid if the socket is renamed or replaced.
sockaddr_un socket_address(int socket_file_fd);

}  // namespace dockbridge
