#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "wire/file_search_messages.hpp"

namespace dockbridge::agent {

struct SearchRequest {
  using Output = wire::GrepOutput;

  std::string pattern;  ///< RE2 syntax, or a text if `literal`
  bool literal = false;
  bool ignore_case = false;
  bool whole_word = false;
  bool multi_line = false;           ///< a match may span lines; `.` matches no line break without (?s)
  std::vector<std::string> include;  ///< globs; if any, only files that match one
  std::vector<std::string> exclude;  ///< globs of files and directories
  bool honour_ignore = true;         ///< .gitignore and .ignore
  bool hidden = false;               ///< also names that begin with a dot
  std::uint32_t max_depth = 0;       ///< 0: no limit
  int top_fd = -1;                   ///< no ignore rules are read above this directory; -1: no such limit
  Output output = Output::content;
  std::size_t context = 0;           ///< lines around each match
  std::uint64_t offset = 0;          ///< matches (content) or files (files, count) to skip
  std::size_t max = 100;             ///< how many to return
  std::size_t max_line_bytes = 500;  ///< of a line, what is around the match
};

using wire::FoundFile;
using wire::FoundLine;

struct SearchResult {
  std::vector<FoundFile> files;  ///< by the bytes of their paths' components
  std::uint64_t shown = 0;       ///< matches or files on this page, as `offset` counts them
  bool more = false;             ///< the next page begins at offset + shown

  std::uint64_t matches = 0;             ///< in all files; 0 in Output::files
  std::uint64_t files_with_matches = 0;  ///< all of them
  std::uint64_t files_searched = 0;      ///< all that were text
  std::uint64_t binary_skipped = 0;
  std::uint64_t hidden_skipped = 0;  ///< entries: a directory counts once
  std::uint64_t ignored_skipped = 0;
  std::uint64_t unreadable = 0;               ///< files and directories
  std::vector<std::string> unreadable_paths;  ///< the first of them, with the reason
  std::uint64_t ignore_files_left_out = 0;    ///< too large to be honoured
  std::uint64_t files_with_long_lines = 0;    ///< lines that were searched in pieces: a very long match may be missed
  std::uint64_t files_in_windows = 0;         ///< too large to be searched for matches of any length at once
};

/// Searches a file, or the files beneath a directory, with all cores. Memory is bounded whatever is searched. What is
/// no text is skipped: FIFOs, devices, sockets and links are never opened, files with a NUL byte are given up. Files
/// that change meanwhile are searched as they are found. Errors `bad_pattern`, `bad_glob`, `not_searchable`. Starts
/// threads, and returns when they have ended; one search at a time.
Result<SearchResult> search(int start_fd, const SearchRequest& request);

}  // namespace dockbridge::agent
