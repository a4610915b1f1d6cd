#pragma once

#include <sys/un.h>

#include <string>

namespace dockbridge {

/// The address of a socket in a directory, by way of its descriptor: the path itself may be too long for an address.
sockaddr_un socket_address(int directory_fd, const std::string& name);
/// That of a socket that was opened with O_PATH: of this one, whatever has its name by now.
sockaddr_un socket_address(int socket_file_fd);

}  // namespace dockbridge
