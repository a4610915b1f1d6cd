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
  bool honour_ignore = true;    ///< .gitignore and .ignore, as git and ripgrep read them; skips .git as well
  bool hidden = false;          ///< also names that begin with a dot
  std::uint32_t max_depth = 0;  ///< 1: only what is in the start itself; 0: no limit
  std::vector<Glob> include;    ///< if any, only what matches one; directories are entered all the same
  std::vector<Glob> exclude;    ///< what matches one is left out, a directory with all that is beneath it
  int top_fd = -1;              ///< no rules are read above this directory; -1: no such limit
};

/// What a walk comes by. Valid during the visit only.
struct WalkEntry {
  int directory_fd;       ///< of the directory that has it
  const char* name;       ///< there
  std::string_view path;  ///< relative to the start
  FileType type;
  unsigned thread;  ///< which of the walk's threads this is, from 0
};

struct WalkTotals {
  std::uint64_t directories = 0;  ///< read, the start included
  std::uint64_t hidden = 0;       ///< entries left out; a directory counts once, whatever is beneath it
  std::uint64_t ignored = 0;
  std::uint64_t excluded = 0;
  std::uint64_t unreadable = 0;               ///< directories that could not be read
  std::vector<std::string> unreadable_paths;  ///< the first of them, in no order, with the reason
  std::uint64_t ignore_files_left_out = 0;    ///< too large, or too many
};

/// How many threads a walk has: as many as there are cores for this process, up to a bound.
unsigned walk_threads();

/// Visits all that is beneath a directory, in no order, with `threads` threads at once. Follows no symbolic link, opens
/// nothing but directories. What vanishes meanwhile is not there; what may not be read is counted. Any depth, with
/// bounded descriptors and memory. Returns when all has been visited; `start_fd` may be an O_PATH descriptor.
WalkTotals walk_tree(int start_fd, const WalkOptions& options, unsigned threads,
                     const std::function<void(const WalkEntry&)>& visit);

}  // namespace dockbridge::agent
