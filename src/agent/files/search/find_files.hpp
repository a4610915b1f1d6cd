#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/files/search/file_type.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

struct FindRequest {
  enum class Order : std::uint8_t { path, newest_first };

  std::string pattern;               ///< a glob
  std::vector<std::string> exclude;  ///< globs of files and directories
  bool honour_ignore = true;         ///< .gitignore and .ignore
  bool hidden = false;               ///< also names that begin with a dot
  bool directories = false;          ///< also directories
  std::uint32_t max_depth = 0;       ///< 0: no limit
  int top_fd = -1;                   ///< no ignore rules are read above this directory; -1: no such limit
  Order order = Order::path;
  std::uint64_t offset = 0;
  std::size_t max = 100;
};

struct FoundName {
  std::string path;  ///< relative to the start
  FileType type = FileType::unknown;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  ///< Unix time
};

struct FindResult {
  std::vector<FoundName> files;  ///< this page; what vanished meanwhile is not on it
  std::uint64_t shown = 0;       ///< what this page takes up
  bool more = false;             ///< the next page begins at offset + shown
  std::uint64_t total = 0;
  std::uint64_t hidden_skipped = 0;  ///< entries: a directory counts once
  std::uint64_t ignored_skipped = 0;
  std::uint64_t unreadable = 0;               ///< directories
  std::vector<std::string> unreadable_paths;  ///< the first of them, with the reason
  std::uint64_t ignore_files_left_out = 0;    ///< too large to be honoured
};

/// The files beneath a directory whose names match a glob, with all cores and in bounded memory. By path means by the
/// bytes of its components; files of the same time are by path. Error `bad_glob`. One at a time.
Result<FindResult> find_files(int start_fd, const FindRequest& request);

}  // namespace dockbridge::agent
