#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/search/file_type.hpp"
#include "agent/files/search/glob.hpp"

namespace dockbridge::agent {

struct WalkOptions {
  bool honour_ignore = true;    ///< .gitignore and .ignore, with the rules of git and ripgrep; skips .git as well
  bool hidden = false;          ///< also names that begin with a dot
  std::uint32_t max_depth = 0;  ///< 1 means only the entries of the start itself; 0 means no limit
  std::vector<Glob> include;    ///< if any, only entries that match one; directories are entered in any case
  std::vector<Glob> exclude;    ///< entries that match one are left out, a directory with its whole subtree
  int top_fd = -1;              ///< no rules are read above this directory; -1 means no limit
};

/// An entry of a directory. Valid during the visit only.
struct WalkEntry {
  int directory_fd;       ///< the directory that contains it
  const char* name;       ///< its name there
  std::string_view path;  ///< relative to the start
  FileType type;
  unsigned thread;  ///< number of the walk's thread, from 0
};

struct WalkTotals {
  std::uint64_t directories = 0;  ///< directories that were read, with the start
  std::uint64_t hidden = 0;       ///< entries that were left out; a directory counts once
  std::uint64_t ignored = 0;
  std::uint64_t excluded = 0;
  std::uint64_t unreadable = 0;               ///< directories that could not be read; a search adds files
  std::vector<std::string> unreadable_paths;  ///< the first of them, in no order, with the reason
  std::uint64_t ignore_files_left_out = 0;    ///< too large, or too many

  void add_unreadable(std::string_view path, std::string_view reason);
  /// Adds the unreadable ones of `other`.
  void add_unreadable(const WalkTotals& other);
};

/// Number of threads of a walk: one per core that this process may use, up to a limit.
unsigned walk_threads();

/// Visits everything beneath a directory, in no order, with `threads` threads at once. Follows no symbolic link, and
/// opens only directories. Entries that vanish meanwhile are left out. Directories that cannot be read are counted. The
/// depth has no limit, and descriptors and memory are bounded. Returns when the walk is complete. `start_fd` may be an
/// O_PATH descriptor.
WalkTotals walk_tree(int start_fd, const WalkOptions& options, unsigned threads,
                     const std::function<void(const WalkEntry&)>& visit);

}  // namespace dockbridge::agent
