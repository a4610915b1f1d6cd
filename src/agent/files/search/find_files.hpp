#pragma once

#include <cstdint>
#include <vector>

#include "agent/files/search/tree_walk.hpp"
#include "error/error.hpp"
#include "wire/file_search_messages.hpp"

namespace dockbridge::agent {

/// A page of the entries that were found beneath a directory.
struct FoundPage {
  std::vector<wire::FileEntry> entries;  ///< without those that vanished meanwhile
  std::uint64_t shown = 0;               ///< entries of this page, with those that vanished
  std::uint64_t total = 0;               ///< entries of all pages
  bool more = false;                     ///< the next page begins at offset + shown
  WalkTotals walked;
};

// Both functions order paths by the bytes of their components. They use all cores and bounded memory. No ignore rules
// are read above `top_fd`; -1 means no limit. One call at a time.

/// Lists a directory. Only entries of the page are examined, so a page of a huge directory costs little more than
/// reading the names. Errors: `bad_glob`; `io_error` if the directory itself cannot be read.
Result<FoundPage> list_directory(int directory_fd, const wire::FileListRequest& request, int top_fd = -1);

/// Finds the files beneath a directory whose paths match a glob. Files of the same time are ordered by path. Error
/// `bad_glob`.
Result<FoundPage> find_files(int start_fd, const wire::FileGlobRequest& request, int top_fd = -1);

}  // namespace dockbridge::agent
