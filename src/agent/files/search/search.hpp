#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/files/search/tree_walk.hpp"
#include "error/error.hpp"
#include "wire/file_search_messages.hpp"

namespace dockbridge::agent {

using wire::FoundFile;
using wire::FoundLine;

struct SearchResult {
  std::vector<FoundFile> files;  ///< ordered by the bytes of the components of their paths
  std::uint64_t shown = 0;       ///< matches or files on this page, counted like `offset`
  bool more = false;             ///< the next page begins at offset + shown

  std::uint64_t matches = 0;  ///< in all files; 0 in GrepOutput::files
  std::uint64_t files_with_matches = 0;
  std::uint64_t files_searched = 0;  ///< text files only
  std::uint64_t binary_skipped = 0;
  std::uint64_t files_with_long_lines = 0;  ///< their lines were searched in pieces, so a very long match may be missed
  std::uint64_t files_in_windows = 0;       ///< too large to be searched at once for matches of any length
  WalkTotals walked;                        ///< `unreadable` counts files too
};

/// Searches a file, or the files beneath a directory, with all cores. Memory is bounded for any input. Everything but
/// text is skipped: FIFOs, devices, sockets and links are never opened, and a file with a NUL byte is skipped. A file
/// that changes meanwhile is searched as it is found. No ignore rules are read above `top_fd`; -1 means no limit. A
/// longer line than `max_line_bytes` is cut around its match. Errors: `bad_pattern`, `bad_glob`, `not_searchable`.
/// Starts threads, and returns when they have ended. One search at a time.
Result<SearchResult> search(int start_fd, const wire::FileGrepRequest& request, int top_fd = -1,
                            std::size_t max_line_bytes = 500);

}  // namespace dockbridge::agent
