#include "agent/files/search/find_files.hpp"

#include <fcntl.h>

#include <utility>

#include "agent/files/search/found_path.hpp"
#include "agent/files/search/open_beneath.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

namespace {

std::int64_t modified_ns(const struct stat& info) {
  return file_nanoseconds(info.st_mtim);
}

}  // namespace

Result<FindResult> find_files(int start_fd, const FindRequest& request) {
  const auto glob = Glob::compile(request.pattern);
  if (!glob) {
    return fail(glob.error());
  }
  auto exclude = Glob::compile_all(request.exclude);
  if (!exclude) {
    return fail(exclude.error());
  }
  const WalkOptions options{request.honour_ignore, request.hidden, request.max_depth, {},
                            std::move(*exclude),   request.top_fd};
  const auto rank_of = [&](const WalkEntry& entry, std::int64_t& rank) {
    if ((entry.type == FileType::directory && !request.directories) || !glob->matches(entry.path)) {
      return false;
    }
    struct stat info {};
    if (request.order == FindRequest::Order::newest_first &&
        ::fstatat(entry.directory_fd, entry.name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
      rank = -modified_ns(info);
    }
    return true;
  };
  FoundPage page = find_page(start_fd, options, walk_threads(), request.offset, request.max, rank_of);
  FindResult result;
  for (FoundPath& found : page.paths) {
    struct stat info {};
    if (stat_beneath(start_fd, found.path, info)) {
      result.files.push_back({std::move(found.path), file_type_of_mode(info.st_mode),
                              static_cast<std::uint64_t>(info.st_size), modified_ns(info)});
    }
  }
  result.shown = page.paths.size();
  result.total = page.total;
  result.more = result.total > request.offset + result.shown;
  result.hidden_skipped = page.walked.hidden;
  result.ignored_skipped = page.walked.ignored;
  result.unreadable = page.walked.unreadable;
  result.unreadable_paths = std::move(page.walked.unreadable_paths);
  result.ignore_files_left_out = page.walked.ignore_files_left_out;
  return result;
}

}  // namespace dockbridge::agent
