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

/// A file as it is before a change, locked against other changes of this kind while this lives. Others are noticed, not
/// kept out.
struct CurrentFile {
  std::optional<ResolvedFile> file;  ///< none: there is none
  FilePlace place;
  FileContent content;

  [[nodiscard]] const ResolvedFile* before() const { return file ? &*file : nullptr; }
};

/// What it means that there is no such file.
enum class Absent { is_an_error, is_fine, is_to_be_made };

/// The directories that one change of several files has locked, by device and inode. They stay locked while this lives.
using LockedDirectories = std::map<std::pair<dev_t, ino_t>, Fd>;

/// With `locked`, a directory in it is not locked again, and a newly locked one is added.
/// Errors for what is no file, may not be written, is too large to be changed by the tools, or locked by another for
/// seconds.
Result<CurrentFile> look_up(const FileSpace& space, const std::string& path, Absent absent,
                            LockedDirectories* locked = nullptr);

}  // namespace dockbridge::agent
