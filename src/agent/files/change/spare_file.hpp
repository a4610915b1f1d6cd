#pragma once

#include <sys/types.h>

#include <string>

#include "util/fd.hpp"

namespace dockbridge::agent {

/// An empty file without a name, created in advance in the directory of the latest change. The next change is often in
/// the same directory, and creating a file can take longer than the rest of a change. The kernel removes it if it is
/// never used.
class SpareFile {
 public:
  /// Whether no process of the container can unmount a file system or make it read-only. An open file would prevent
  /// that.
  static bool is_harmless();

  /// Creates one in this directory, if the file system supports that.
  void prepare(int directory_fd);
  /// Names it in this directory, and returns it. Empty if it was created elsewhere, or cannot be named.
  Fd take(int directory_fd, const std::string& name);
  /// Closes it.
  void drop() { m_file.reset(); }

 private:
  Fd m_file;
  dev_t m_device = 0;  ///< of the directory
  ino_t m_inode = 0;
};

}  // namespace dockbridge::agent
