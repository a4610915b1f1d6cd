#include "agent/files/service/searching.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/files/search/find_files.hpp"
#include "agent/files/search/listing.hpp"
#include "agent/files/search/search.hpp"
#include "util/text.hpp"
#include "wire/frame.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_shown_path_bytes = 300;
constexpr std::int64_t k_ns_per_ms = 1'000'000;

const char* name_of(FileType type) {
  switch (type) {
    case FileType::regular:
      return "file";
    case FileType::directory:
      return "directory";
    case FileType::symlink:
      return "link";
    case FileType::fifo:
      return "fifo";
    case FileType::socket:
      return "socket";
    case FileType::character_device:
      return "char";
    case FileType::block_device:
      return "block";
    case FileType::unknown:
      break;
  }
  return "unknown";
}

/// Where a search begins.
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

template <typename Found>
wire::SearchTotals totals_of(const Found& found, std::uint64_t total, bool more) {
  wire::SearchTotals totals{total, more, found.hidden_skipped, found.ignored_skipped, found.unreadable, {}};
  // Those of a deep tree would not fit into a head.
  for (const std::string& path : found.unreadable_paths) {
    totals.unreadable_paths.push_back(printable_line(path, k_shown_path_bytes));
  }
  return totals;
}

/// A page of entries, as far as they fit.
template <typename Found, typename Names, typename EntryOf>
wire::Frame listing_of(const Start& start, const Found& found, const Names& page, EntryOf entry_of) {
  wire::FoundBody entries;
  bool fits = true;
  for (std::size_t i = 0; i < page.size() && fits; ++i) {
    fits = entries.add(wire::encode(entry_of(page[i])));
  }
  const wire::FileListing listing{
      start.file.path, {}, fits ? found.shown : entries.count(), totals_of(found, found.total, found.more || !fits)};
  return {to_json(listing), entries.take()};
}

SearchRequest search_request(const wire::FileGrepRequest& asked, const Start& start) {
  SearchRequest request;
  request.pattern = asked.pattern;
  request.literal = asked.literal;
  request.ignore_case = asked.ignore_case;
  request.whole_word = asked.whole_word;
  request.multi_line = asked.multi_line;
  request.include = asked.include;
  request.exclude = asked.exclude;
  request.honour_ignore = asked.honour_ignore_files;
  request.hidden = asked.hidden;
  request.top_fd = start.top.get();
  request.output = asked.output;
  request.context = asked.context;
  request.offset = asked.offset;
  request.max = asked.max;
  return request;
}

/// What was not searched as one might think.
std::vector<std::string> grep_notes(const SearchResult& found) {
  std::vector<std::string> notes;
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) {
      notes.push_back(fmt::format("{} {}", count, what));
    }
  };
  note(found.ignore_files_left_out, "ignore files were too large to be honoured");
  note(found.files_with_long_lines, "files have very long lines, which were searched in pieces");
  note(found.files_in_windows, "files were too large for matches of any length over several lines");
  return notes;
}

/// Matches of a file that begin in its lines on this page.
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
  ListOptions options;
  options.ignore = request.ignore;
  options.depth = request.depth;
  options.honour_ignore = request.honour_ignore_files;
  options.details = request.details;
  options.top_fd = start->top.get();
  options.offset = request.offset;
  options.max = request.max;
  const auto found = list_directory(start->fd.get(), options);
  if (!found) {
    return fail(found.error());
  }
  return listing_of(*start, *found, found->entries, [](const ListedName& entry) {
    return wire::FileEntry{entry.path, name_of(entry.type), entry.size, entry.modified_ns / k_ns_per_ms,
                           entry.mode, entry.link_target};
  });
}

Result<wire::Frame> glob_files(const FileSpace& space, const wire::FileGlobRequest& request) {
  const auto start = start_of(space, request.path, false);
  if (!start) {
    return fail(start.error());
  }
  FindRequest wanted;
  wanted.pattern = request.pattern;
  wanted.honour_ignore = request.honour_ignore_files;
  wanted.hidden = request.hidden;
  wanted.top_fd = start->top.get();
  wanted.order = request.newest_first ? FindRequest::Order::newest_first : FindRequest::Order::path;
  wanted.offset = request.offset;
  wanted.max = request.max;
  const auto found = find_files(start->fd.get(), wanted);
  if (!found) {
    return fail(found.error());
  }
  return listing_of(*start, *found, found->files, [](const FoundName& file) {
    return wire::FileEntry{file.path, name_of(file.type), file.size, file.modified_ns / k_ns_per_ms};
  });
}

Result<wire::Frame> grep_files(const FileSpace& space, const wire::FileGrepRequest& request) {
  const auto start = start_of(space, request.path, true);
  if (!start) {
    return fail(start.error());
  }
  const auto found = search(start->fd.get(), search_request(request, *start));
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
  result.totals = totals_of(*found, by_lines ? found->matches : found->files_with_matches, found->more || !fits);
  result.notes = grep_notes(*found);
  return wire::Frame{to_json(result), files.take()};
}

}  // namespace dockbridge::agent
