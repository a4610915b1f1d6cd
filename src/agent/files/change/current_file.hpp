#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/files/file_space.hpp"
#include "agent/files/text/text_page.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// A file before a change. Its directory is locked against other changes by these tools during the lifetime. Changes by
/// other programs are detected, not prevented.
struct CurrentFile {
  std::optional<ResolvedFile> file;  ///< nullopt: the file does not exist
  FilePlace place;
  FileContent content;

  [[nodiscard]] const ResolvedFile* before() const { return file ? &*file : nullptr; }
};

/// Whether a file may be missing, and whether its directories are created then.
enum class Absent { is_an_error, is_fine, is_created };

/// The directories that a change of several files has locked, by device and inode. They stay locked during the
/// lifetime.
using LockedDirectories = std::map<std::pair<dev_t, ino_t>, Fd>;

/// Finds, locks and reads a file. With `locked`, a directory in it is not locked again, and a newly locked one is
/// added. Fails if the path is not a regular file, is not writable, is too large to be changed by the tools, or if
/// another process locks its directory for seconds.
Result<CurrentFile> find_current(const FileSpace& space, const std::string& path, Absent absent,
                                 LockedDirectories* locked = nullptr);

}  // namespace dockbridge::agent
