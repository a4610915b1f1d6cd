#include "agent/files/search/open_beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_piece_bytes = 4000;  // PATH_MAX is 4096

int open_piece(int directory_fd, const std::string& path, int flags) {
  struct open_how how {};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, directory_fd, path.c_str(), &how, sizeof how));
}

/// For kernels without openat2.
Fd open_by_component(int directory_fd, const std::string& path, int flags) {
  Fd directory;
  for (std::size_t begin = 0; true;) {
    const std::size_t end = path.find('/', begin);
    const std::string name = path.substr(begin, end - begin);
    const bool is_last = end == std::string::npos;
    const int from = directory ? directory.get() : directory_fd;
    Fd opened(::openat(from, name.c_str(), is_last ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (is_last || !opened) {
      return opened;
    }
    directory = std::move(opened);
    begin = end + 1;
  }
}

}  // namespace

Fd open_beneath(int start_fd, std::string_view path, int flags) {
  flags |= O_CLOEXEC | O_NOFOLLOW;
  Fd directory;
  while (true) {
    const bool is_last = path.size() <= k_max_piece_bytes;
    const std::size_t length = is_last ? path.size() : path.rfind('/', k_max_piece_bytes);
    if (length == std::string_view::npos) {
      errno = ENAMETOOLONG;
      return {};
    }
    const std::string piece(path.substr(0, length));
    const int piece_flags = is_last ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int from = directory ? directory.get() : start_fd;
    Fd opened(open_piece(from, piece, piece_flags));
    if (!opened && (errno == ENOSYS || errno == EPERM)) {
      opened = open_by_component(from, piece, piece_flags);
    }
    if (is_last || !opened) {
      return opened;
    }
    directory = std::move(opened);
    path.remove_prefix(length + 1);
  }
}

bool stat_beneath(int start_fd, std::string_view path, struct stat& info) {
  if (path.find('/') == std::string_view::npos) {
    return ::fstatat(start_fd, std::string(path).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  }
  const Fd file = open_beneath(start_fd, path, O_PATH);
  return file && ::fstat(file.get(), &info) == 0;
}

std::string link_target_beneath(int start_fd, std::string_view path) {
  const Fd link = open_beneath(start_fd, path, O_PATH);
  std::array<char, PATH_MAX> target{};
  const ssize_t length = link ? ::readlinkat(link.get(), "", target.data(), target.size()) : -1;
  return {target.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace dockbridge::agent
