#pragma once

#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace dockbridge::agent {

/// While it lives, files are accessed as the user and group that a process has, if this is root and that is another.
/// A container's root may not look into the processes of others, but everybody may look into their own. For programs
/// of one thread.
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
