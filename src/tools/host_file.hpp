#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "tools/host_directories.hpp"
#include "util/fd.hpp"

namespace dockbridge::tools {

/// Opens a regular file on the host for reading. Nothing else is opened: a device or a pipe could block.
Result<Fd> open_host_file(const HostPlace& place, const std::string& path);

/// A file on the host that is written under a temporary name in its directory, and renamed when it is complete. An
/// incomplete file is removed.
class HostFile {
 public:
  /// Error `host_file_exists`, before anything is written, if the file exists and may not be replaced.
  static Result<HostFile> create(const HostPlace& place, const std::string& path, bool overwrite);
  HostFile(HostFile&& other) noexcept;
  HostFile& operator=(HostFile&&) = delete;
  ~HostFile();

  /// Sets the size; parts that are not written remain holes.
  Result<void> resize(std::uint64_t size);
  Result<void> write_at(std::uint64_t offset, std::string_view bytes);
  /// `mode`: the permissions of a new file. A replaced file keeps its own.
  Result<void> finish(mode_t mode);

 private:
  HostFile() = default;

  std::string m_path;
  Fd m_directory;
  std::string m_name;
  std::string m_temporary;
  Fd m_file;
  bool m_overwrite = false;
};

}  // namespace dockbridge::tools
