#include "agent/files/service/searching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/files/search/find_files.hpp"
#include "agent/files/search/search.hpp"
#include "util/text.hpp"
#include "wire/file_search_messages.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_shown_path_bytes = 300;

/// Start of a search.
struct Start {
  ResolvedFile file;
  Fd fd;
  Fd top;  ///< the root of the file tools, if they have one
};

Result<Start> start_of(const FileSpace& space, const std::string& path, bool may_be_file) {
  Start start;
  auto file = space.find(path);
  if (!file) {
    return fail(file.error());
  }
  start.file = std::move(*file);
  if (!start.file.is_directory() && !(may_be_file && start.file.is_regular())) {
    return fail(
        ErrorCode::not_a_directory,
        fmt::format("Not a directory: {}", printable_line(start.file.path, k_shown_path_bytes)),
        may_be_file ? "Pass a directory or a file" : "Pass the directory that contains it. file_read reads files");
  }
  auto fd = start.file.is_directory() ? start.file.open_directory() : start.file.open_for_reading();
  if (!fd) {
    return fail(fd.error());
  }
  start.fd = std::move(*fd);
  if (!space.root().empty()) {
    auto top = space.find(space.root()).and_then([](const ResolvedFile& found) { return found.open_directory(); });
    if (!top) {
      return fail(top.error());
    }
    start.top = std::move(*top);
  }
  return start;
}

wire::SearchTotals totals_of(const WalkTotals& walked, std::uint64_t total, bool more) {
  wire::SearchTotals totals{total, more, walked.hidden, walked.ignored, walked.unreadable, {}};
  // The full paths of a deep tree would not fit into a head.
  for (const std::string& path : walked.unreadable_paths) {
    totals.unreadable_paths.push_back(printable_line(path, k_shown_path_bytes));
  }
  return totals;
}

/// A page of entries, as far as they fit.
Result<wire::Frame> listing_of(const Start& start, const Result<FoundPage>& page) {
  if (!page) {
    return fail(page.error());
  }
  wire::FoundBody entries;
  const bool fits = std::all_of(page->entries.begin(), page->entries.end(),
                                [&](const wire::FileEntry& entry) { return entries.add(wire::encode(entry)); });
  const wire::FileListing listing{start.file.path,
                                  {},
                                  fits ? page->shown : entries.count(),
                                  totals_of(page->walked, page->total, page->more || !fits)};
  return wire::Frame{to_json(listing), entries.take()};
}

/// Notes on limits that affected the search.
std::vector<std::string> grep_notes(const SearchResult& found) {
  std::vector<std::string> notes;
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) {
      notes.push_back(fmt::format("{} {}", count, what));
    }
  };
  note(found.walked.ignore_files_left_out, "ignore files were too large to be honoured");
  note(found.files_with_long_lines, "files have very long lines, which were searched in pieces");
  note(found.files_in_windows, "files were too large for matches of any length over several lines");
  return notes;
}

/// Number of matches that begin in the file's lines on this page.
std::uint64_t matches_shown(const wire::FoundFile& file) {
  return static_cast<std::uint64_t>(
      std::count_if(file.lines.begin(), file.lines.end(),
                    [](const wire::FoundLine& line) { return line.matches && line.column > 0; }));
}

}  // namespace

Result<wire::Frame> list_files(const FileSpace& space, const wire::FileListRequest& request) {
  const auto start = start_of(space, request.path, false);
  if (!start) {
    return fail(start.error());
  }
  return listing_of(*start, list_directory(start->fd.get(), request, start->top.get()));
}

Result<wire::Frame> glob_files(const FileSpace& space, const wire::FileGlobRequest& request) {
  const auto start = start_of(space, request.path, false);
  if (!start) {
    return fail(start.error());
  }
  return listing_of(*start, find_files(start->fd.get(), request, start->top.get()));
}

Result<wire::Frame> grep_files(const FileSpace& space, const wire::FileGrepRequest& request) {
  const auto start = start_of(space, request.path, true);
  if (!start) {
    return fail(start.error());
  }
  const auto found = search(start->fd.get(), request, start->top.get());
  if (!found) {
    return fail(found.error());
  }
  const bool by_lines = request.output == wire::GrepOutput::content;
  wire::FoundFilesBody files;
  std::uint64_t shown = 0;
  for (const wire::FoundFile& file : found->files) {
    if (!files.add(file)) {
      break;
    }
    shown += by_lines ? matches_shown(file) : 1;
  }
  const bool fits = files.count() == found->files.size();
  wire::FileGrepResult result;
  result.path = start->file.path;
  result.shown = fits ? found->shown : shown;
  result.matches = found->matches;
  result.files_with_matches = found->files_with_matches;
  result.files_searched = found->files_searched;
  result.binary_skipped = found->binary_skipped;
  result.totals = totals_of(found->walked, by_lines ? found->matches : found->files_with_matches, found->more || !fits);
  result.notes = grep_notes(*found);
  return wire::Frame{to_json(result), files.take()};
}

}  // namespace dockbridge::agent
