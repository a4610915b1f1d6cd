#pragma once

#include <sys/stat.h>

#include <string>

#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// A path as errors show it: one line of at most 300 bytes.
std::string shown(const std::string& path);
/// An errno value about a file, as an error that says what to do.
Error file_error(const std::string& path, int number);
/// Reads `size` bytes from `offset` on; fewer at the end of the file or of a pseudo file. `path` is for the error.
Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size, const std::string& path);

/// A file that is there. `handle` is of the kind O_PATH: nothing was opened that could block or have an effect.
struct ResolvedFile {
  Fd handle;
  std::string path;  ///< the real one, without symbolic links
  struct stat info {};

  [[nodiscard]] bool is_regular() const { return S_ISREG(info.st_mode); }
  [[nodiscard]] bool is_directory() const { return S_ISDIR(info.st_mode); }
  /// To be read from; a pseudo file that has nothing to say does not block.
  [[nodiscard]] Result<Fd> open_for_reading() const;
  [[nodiscard]] Result<Fd> open_directory() const;
};

/// An error for what is a directory, a device, a pipe or a socket.
Result<void> expect_regular(const ResolvedFile& file);
/// To replace a file it is enough to be allowed to change its directory; but who protected the file meant it.
Result<void> expect_writable(const ResolvedFile& file);

/// A name in a directory, where a file is or may be made.
struct FilePlace {
  Fd directory;
  std::string name;
  std::string path;  ///< of the file, without symbolic links in it
};

/// An error unless the file at `place` is still the one that was looked up, and nobody has written to it since.
Result<void> expect_untouched(const FilePlace& place, const ResolvedFile& before);
Error touched_error(const std::string& path);

/// The files that the tools may reach: all there are, or those beneath a directory. The kernel sees to that while it
/// resolves a path (openat2), so that nobody can swap a directory for a symbolic link in between. Paths are absolute.
class FileSpace {
 public:
  /// An empty root is no limit.
  static Result<FileSpace> open(const std::string& root);

  [[nodiscard]] const std::string& root() const { return m_root; }

  /// Error `no_such_file` if there is none; `outside_root` if the way there leaves the root.
  [[nodiscard]] Result<ResolvedFile> find(const std::string& path) const;
  /// Where the file that was found is kept, for replacing it.
  [[nodiscard]] Result<FilePlace> place_of(const ResolvedFile& file) const;
  /// Where a file that is not there yet would be; the directories on the way are made if they may be.
  [[nodiscard]] Result<FilePlace> place_for(const std::string& path, bool may_make_directories) const;

 private:
  /// Of an absolute path: how it goes on from the root. Error if it does not begin there.
  [[nodiscard]] Result<std::string> beneath(const std::string& path) const;
  [[nodiscard]] Fd open_way(int from, const std::string& way, int flags) const;
  /// Also follows absolute links whose target is beneath the root.
  [[nodiscard]] Fd open_by_components(const std::string& way, int flags) const;
  [[nodiscard]] Result<Fd> make_directories(const std::string& way, const std::string& path) const;

  [[nodiscard]] bool is_limited() const { return !m_root.empty(); }

  std::string m_root;       ///< as it was given; empty: no limit
  std::string m_real_root;  ///< without symbolic links
  Fd m_directory;
};

}  // namespace dockbridge::agent
