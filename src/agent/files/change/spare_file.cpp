#include "agent/files/change/spare_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace dockbridge::agent {

bool SpareFile::is_harmless() {
  return ::prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0;
}

void SpareFile::prepare(int directory_fd) {
  struct stat info {};
  const bool is_there = ::fstat(directory_fd, &info) == 0;
  m_file.reset(is_there ? ::openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1);
  m_device = info.st_dev;
  m_inode = info.st_ino;
}

Fd SpareFile::take(int directory_fd, const std::string& name) {
  struct stat info {};
  const bool is_here = m_file && ::fstat(directory_fd, &info) == 0 && info.st_dev == m_device && info.st_ino == m_inode;
  const std::string from = fmt::format("/proc/self/fd/{}", m_file.get());
  const bool is_named = is_here && ::linkat(AT_FDCWD, from.c_str(), directory_fd, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  if (!is_named) {
    return {};
  }
  ::futimens(m_file.get(), nullptr);  // it may have been created long ago
  return std::move(m_file);
}

}  // namespace dockbridge::agent
