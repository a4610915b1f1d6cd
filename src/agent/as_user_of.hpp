#pragma once

#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace dockbridge::agent {

/// Accesses files as the user and group of a process during its lifetime, if the caller is root and the process has
/// another user. A container's root may not examine the processes of other users, but every user may examine their own.
/// For programs of one thread.
class AsUserOf {
 public:
  explicit AsUserOf(pid_t pid) {
    struct stat owner {};
    m_is_other = ::geteuid() == 0 && ::stat(fmt::format("/proc/{}", pid).c_str(), &owner) == 0 &&
                 (owner.st_uid != 0 || owner.st_gid != ::getegid());
    if (m_is_other) {
      ::setfsgid(owner.st_gid);
      ::setfsuid(owner.st_uid);
    }
  }
  ~AsUserOf() {
    if (m_is_other) {
      ::setfsuid(::geteuid());
      ::setfsgid(::getegid());
    }
  }
  AsUserOf(const AsUserOf&) = delete;
  AsUserOf& operator=(const AsUserOf&) = delete;

 private:
  bool m_is_other = false;
};

}  // namespace dockbridge::agent
