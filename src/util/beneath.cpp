#include "util/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>

namespace dockbridge {

Fd open_confined(int directory, const std::string& path, int flags, Links links, mode_t mode) {
  constexpr int k_tries = 10;
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links == Links::none ? RESOLVE_NO_SYMLINKS : 0U);
  int fd = -1;
  int tries = 0;
  do {
    fd = static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how));
  } while (fd < 0 && errno == EAGAIN && ++tries < k_tries);  // a component was renamed concurrently
  return Fd(fd);
}

}  // namespace dockbridge
