#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include "wire/file_names.hpp"

namespace dockbridge::agent {

using wire::FileType;

inline FileType file_type_of_mode(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::regular;
    case S_IFDIR:
      return FileType::directory;
    case S_IFLNK:
      return FileType::symlink;
    case S_IFIFO:
      return FileType::fifo;
    case S_IFSOCK:
      return FileType::socket;
    case S_IFCHR:
      return FileType::character_device;
    case S_IFBLK:
      return FileType::block_device;
    default:
      return FileType::unknown;
  }
}

/// Converts `d_type` of a directory entry.
inline FileType file_type_of_entry(unsigned char type) {
  return type == DT_UNKNOWN ? FileType::unknown : file_type_of_mode(DTTOIF(type));
}

}  // namespace dockbridge::agent
