#pragma once

#include <sys/types.h>

#include <string>

#include "util/fd.hpp"

namespace dockbridge::agent {

/// An empty file without a name, made before it is needed, in the directory where something was changed last: who
/// changes one file there often changes another, and making a file can take longer than all the rest of a change.
/// Nobody sees it, and the kernel removes it if it is never used.
class SpareFile {
 public:
  /// Whether nobody in here could unmount a file system, or make it read-only: an open file on it would be in the way.
  static bool is_harmless();

  /// Makes one in this directory. There is none where that cannot be done.
  void prepare(int directory_fd);
  /// Gives it a name in this directory. None if it was made elsewhere, or cannot be named.
  Fd take(int directory_fd, const std::string& name);
  /// Lets go of it.
  void drop() { m_file.reset(); }

 private:
  Fd m_file;
  dev_t m_device = 0;  ///< of the directory
  ino_t m_inode = 0;
};

}  // namespace dockbridge::agent
