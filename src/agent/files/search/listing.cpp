#include "agent/files/search/listing.hpp"

#include <optional>
#include <utility>

#include "agent/files/search/found_path.hpp"
#include "agent/files/search/open_beneath.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

namespace {

/// None if it has vanished. Looks closer only if it has to: that takes longer than all the rest of a listing.
std::optional<ListedName> describe(FoundPath found, int directory_fd, bool details) {
  constexpr mode_t k_permissions = 07777;
  ListedName entry;
  entry.type = found.type;
  if (details || entry.type == FileType::unknown) {
    struct stat info {};
    if (!stat_beneath(directory_fd, found.path, info)) {
      return std::nullopt;
    }
    entry.type = file_type_of_mode(info.st_mode);
    entry.size = static_cast<std::uint64_t>(info.st_size);
    entry.modified_ns = file_nanoseconds(info.st_mtim);
    entry.mode = info.st_mode & k_permissions;
  }
  if (entry.type == FileType::symlink) {
    entry.link_target = link_target_beneath(directory_fd, found.path);
  }
  entry.path = std::move(found.path);
  return entry;
}

}  // namespace

Result<Listing> list_directory(int directory_fd, const ListOptions& request) {
  auto ignore = Glob::compile_all(request.ignore);
  if (!ignore) {
    return fail(ignore.error());
  }
  const WalkOptions options{request.honour_ignore, request.hidden, request.depth, {},
                            std::move(*ignore),    request.top_fd};
  const unsigned threads = request.depth == 1 ? 1 : walk_threads();
  FoundPage page = find_page(directory_fd, options, threads, request.offset, request.max,
                             [](const WalkEntry&, std::int64_t&) { return true; });
  if (page.walked.directories == 0) {
    return fail(ErrorCode::io_error, "Cannot read the directory: " + (page.walked.unreadable_paths.empty()
                                                                          ? std::string("it is gone")
                                                                          : page.walked.unreadable_paths.front()));
  }
  Listing listing;
  for (FoundPath& found : page.paths) {
    if (auto entry = describe(std::move(found), directory_fd, request.details)) {
      listing.entries.push_back(std::move(*entry));
    }
  }
  listing.shown = page.paths.size();
  listing.total = page.total;
  listing.more = listing.total > request.offset + listing.shown;
  listing.hidden_skipped = page.walked.hidden;
  listing.ignored_skipped = page.walked.ignored;
  listing.excluded = page.walked.excluded;
  listing.unreadable = page.walked.unreadable;
  listing.unreadable_paths = std::move(page.walked.unreadable_paths);
  listing.ignore_files_left_out = page.walked.ignore_files_left_out;
  return listing;
}

}  // namespace dockbridge::agent
