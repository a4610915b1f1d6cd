#include "util/socket_address.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

namespace dockbridge {

namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

}  // namespace

sockaddr_un socket_address(int directory_fd, const std::string& name) {
  return address_of(fmt::format("/proc/self/fd/{}/{}", directory_fd, name));
}

sockaddr_un socket_address(int socket_file_fd) {
  return address_of(fmt::format("/proc/self/fd/{}", socket_file_fd));
}

}  // namespace dockbridge
