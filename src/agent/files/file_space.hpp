#pragma once

#include <sys/stat.h>

#include <string>

#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// A path as errors show it: one line of at most 300 bytes.
std::string displayed_path(const std::string& path);
/// Converts an errno value of a file to an error with the next step.
Error file_error(const std::string& path, int number);
/// Reads `size` bytes from `offset` on; fewer at the end of a file. `path` is for the error.
Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size, const std::string& path);

/// An existing file. `handle` is an O_PATH descriptor, so opening it did not block and had no effect.
struct ResolvedFile {
  Fd handle;
  std::string path;  ///< real path, without symbolic links
  struct stat info {};

  [[nodiscard]] bool is_regular() const { return S_ISREG(info.st_mode); }
  [[nodiscard]] bool is_directory() const { return S_ISDIR(info.st_mode); }
  /// Opens the file for reading. Reading an empty pseudo file does not block.
  [[nodiscard]] Result<Fd> open_for_reading() const;
  [[nodiscard]] Result<Fd> open_directory() const;
};

/// Error for a directory, a device, a pipe or a socket.
Result<void> expect_regular(const ResolvedFile& file);
/// Error for a write-protected file. Replacing it requires only write access to its directory, but the protection is
/// respected.
Result<void> expect_writable(const ResolvedFile& file);

/// A name in a directory, of an existing file or a new one.
struct FilePlace {
  Fd directory;
  std::string name;
  std::string path;  ///< of the file, without symbolic links in it
};

/// Error unless the file at `place` is still the one that was looked up, and was not written to since.
Result<void> expect_untouched(const FilePlace& place, const ResolvedFile& before);
Error touched_error(const std::string& path);

/// The files that the tools may access: all files, or those beneath a directory. The kernel enforces this while it
/// resolves a path (openat2), so swapping a directory for a symbolic link has no effect. Paths are absolute.
class FileSpace {
 public:
  /// An empty root means no limit.
  static Result<FileSpace> open(const std::string& root);

  [[nodiscard]] const std::string& root() const { return m_root; }

  /// Errors: `no_such_file`; `outside_root` if the path leaves the root.
  [[nodiscard]] Result<ResolvedFile> find(const std::string& path) const;
  /// Directory and name of a file that was found, for replacing it.
  [[nodiscard]] Result<FilePlace> place_of(const ResolvedFile& file) const;
  /// Directory and name of a file that does not exist yet. May create the missing directories.
  [[nodiscard]] Result<FilePlace> place_for(const std::string& path, bool may_make_directories) const;

 private:
  /// Converts an absolute path to one relative to the root. Error if it is not beneath the root.
  [[nodiscard]] Result<std::string> beneath(const std::string& path) const;
  [[nodiscard]] Fd open_way(int from, const std::string& way, int flags) const;
  /// Also follows absolute links whose target is beneath the root.
  [[nodiscard]] Fd open_by_components(const std::string& way, int flags) const;
  [[nodiscard]] Result<Fd> make_directories(const std::string& way, const std::string& path) const;

  [[nodiscard]] bool is_limited() const { return !m_root.empty(); }

  std::string m_root;       ///< as configured; empty means no limit
  std::string m_real_root;  ///< without symbolic links
  Fd m_directory;
};

}  // namespace dockbridge::agent
