#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/files/search/file_type.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

struct ListOptions {
  std::vector<std::string> ignore;  ///< globs of what is left out
  std::uint32_t depth = 1;          ///< 1: what is in the directory itself; 0: no limit
  bool honour_ignore = false;       ///< .gitignore and .ignore
  bool hidden = true;               ///< also names that begin with a dot
  bool details = false;             ///< size, time and mode
  int top_fd = -1;                  ///< no ignore rules are read above this directory; -1: no such limit
  std::uint64_t offset = 0;
  std::size_t max = 1000;
};

struct ListedName {
  std::string path;  ///< relative to the directory
  FileType type = FileType::unknown;
  // If they were asked for.
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  ///< Unix time
  std::optional<mode_t> mode;    ///< permissions and the bits before them

  std::string link_target;  ///< of a symbolic link, as it is written there
};

struct Listing {
  std::vector<ListedName> entries;  ///< this page, by the bytes of their paths' components; less what has vanished
  std::uint64_t shown = 0;          ///< what this page takes up
  bool more = false;                ///< the next page begins at offset + shown
  std::uint64_t total = 0;
  std::uint64_t hidden_skipped = 0;  ///< entries: a directory counts once
  std::uint64_t ignored_skipped = 0;
  std::uint64_t excluded = 0;                 ///< by the globs
  std::uint64_t unreadable = 0;               ///< directories
  std::vector<std::string> unreadable_paths;  ///< the first of them, with the reason
  std::uint64_t ignore_files_left_out = 0;    ///< too large to be honoured
};

/// What is in a directory. Only what is on the page is looked at closer, so that a page of a huge directory costs
/// little more than reading its names. Errors `bad_glob`, `io_error` if the directory itself cannot be read. One at a
/// time.
Result<Listing> list_directory(int directory_fd, const ListOptions& request);

}  // namespace dockbridge::agent
