#include "agent/session/direct_line.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <string>

#include "util/file.hpp"
#include "util/socket_address.hpp"

namespace dockbridge::agent {

Result<Fd> join_line(const wire::LineRequest& invitation) {
  const auto& [path, device, inode, key] = invitation;
  const auto failed = [&] { return fail(ErrorCode::no_line, errno_error(path).message); };
  const Fd file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    return failed();
  }
  if (info.st_dev != device || info.st_ino != inode) {
    return fail(ErrorCode::no_line, path + ": not the socket of the host");
  }
  Fd line(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = socket_address(file.get());
  if (!line || ::connect(line.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed();
  }
  if (::send(line.get(), key.data(), key.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(key.size())) {
    return failed();
  }
  return line;
}

}  // namespace dockbridge::agent
