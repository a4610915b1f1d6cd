#include "agent/files/search/find_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "agent/files/search/open_beneath.hpp"
#include "agent/files/search/path_order.hpp"
#include "util/clock.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_kept = 100'000;
constexpr std::size_t k_max_kept_bytes = 16 * 1024 * 1024;
constexpr std::int64_t k_ns_per_ms = 1'000'000;

/// An entry in the order of the pages.
struct FoundPath {
  std::int64_t rank = 0;  // compared before the path
  std::string path;
  FileType type = FileType::unknown;

  bool operator<(const FoundPath& other) const {
    return rank != other.rank ? rank < other.rank : path_less(path, other.path);
  }
  [[nodiscard]] std::size_t bytes() const { return path.size() + sizeof(FoundPath); }
};

struct Finder {
  FirstItems<FoundPath> first;
  std::uint64_t total = 0;
};

/// Returns the rank of an entry, or nullopt if it is not wanted. Called by several threads.
using RankOf = std::function<std::optional<std::int64_t>(const WalkEntry&)>;

/// Returns an entry of the answer, or nullopt if the file vanished.
using Describe = std::function<std::optional<wire::FileEntry>(FoundPath)>;

FoundPage find_page(int start_fd, const WalkOptions& options, unsigned threads, std::uint64_t offset, std::size_t max,
                    const RankOf& rank_of, const Describe& describe) {
  FoundPage page;
  std::uint64_t passed = 0;
  FoundPath last;
  for (bool is_first_round = true, all_known = false; !all_known && page.shown < max; is_first_round = false) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(offset + max - passed, k_max_kept));
    const FirstItems<FoundPath> none(most, k_max_kept_bytes / threads, is_first_round ? nullptr : &last);
    std::vector<Finder> finders(threads, {none});
    WalkTotals walked = walk_tree(start_fd, options, threads, [&](const WalkEntry& entry) {
      if (const auto rank = rank_of(entry)) {
        Finder& finder = finders[entry.thread];
        ++finder.total;
        finder.first.add({*rank, std::string(entry.path), entry.type});
      }
    });
    FirstItems<FoundPath> first = none;
    for (Finder& finder : finders) {
      first.merge(std::move(finder.first));
      page.total += is_first_round ? finder.total : 0;
    }
    if (is_first_round) {
      page.walked = std::move(walked);
    }
    all_known = !first.has_limit();
    std::vector<FoundPath> known = first.sorted();
    if (known.empty()) {
      break;
    }
    last = known.back();
    for (FoundPath& path : known) {
      if (passed++ >= offset && page.shown < max) {
        ++page.shown;
        if (auto entry = describe(std::move(path))) {
          page.entries.push_back(std::move(*entry));
        }
      }
    }
  }
  page.more = page.total > offset + page.shown;
  return page;
}

/// An entry with its size and time. Sets `mode`. Nullopt if the file vanished.
std::optional<wire::FileEntry> entry_of(int start_fd, FoundPath found, mode_t& mode) {
  struct stat info {};
  if (!stat_beneath(start_fd, found.path, info)) {
    return std::nullopt;
  }
  mode = info.st_mode;
  return wire::FileEntry{std::move(found.path), file_type_of_mode(mode), static_cast<std::uint64_t>(info.st_size),
                         file_nanoseconds(info.st_mtim) / k_ns_per_ms};
}

/// Looks up the file only if necessary: that takes longer than the rest of a listing.
std::optional<wire::FileEntry> listed_entry(int directory_fd, FoundPath found, bool details) {
  std::optional<wire::FileEntry> entry;
  bool is_link = found.type == FileType::symlink;
  if (details || found.type == FileType::unknown) {
    mode_t mode = 0;
    entry = entry_of(directory_fd, std::move(found), mode);
    if (!entry) {
      return entry;
    }
    entry->mode = mode & wire::k_permissions;
    is_link = S_ISLNK(mode);
  } else {
    entry = wire::FileEntry{std::move(found.path), found.type};
  }
  if (is_link) {
    entry->target = link_target_beneath(directory_fd, entry->path);
  }
  return entry;
}

}  // namespace

Result<FoundPage> list_directory(int directory_fd, const wire::FileListRequest& request, int top_fd) {
  auto ignore = Glob::compile_all(request.ignore);
  if (!ignore) {
    return fail(ignore.error());
  }
  const WalkOptions options{request.honour_ignore_files, true, request.depth, {}, std::move(*ignore), top_fd};
  const unsigned threads = request.depth == 1 ? 1 : walk_threads();
  FoundPage page = find_page(
      directory_fd, options, threads, request.offset, request.max, [](const WalkEntry&) { return 0; },
      [&](FoundPath found) { return listed_entry(directory_fd, std::move(found), request.details); });
  if (page.walked.directories == 0) {
    return fail(ErrorCode::io_error, "Cannot read the directory: " + (page.walked.unreadable_paths.empty()
                                                                          ? std::string("No such file or directory")
                                                                          : page.walked.unreadable_paths.front()));
  }
  return page;
}

Result<FoundPage> find_files(int start_fd, const wire::FileGlobRequest& request, int top_fd) {
  const auto glob = Glob::compile(request.pattern);
  if (!glob) {
    return fail(glob.error());
  }
  const WalkOptions options{request.honour_ignore_files, request.hidden, 0, {}, {}, top_fd};
  const auto rank_of = [&](const WalkEntry& entry) -> std::optional<std::int64_t> {
    if (entry.type == FileType::directory || !glob->matches(entry.path)) {
      return std::nullopt;
    }
    struct stat info {};
    const bool is_dated =
        request.newest_first && ::fstatat(entry.directory_fd, entry.name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    return is_dated ? -file_nanoseconds(info.st_mtim) : 0;
  };
  return find_page(start_fd, options, walk_threads(), request.offset, request.max, rank_of, [&](FoundPath found) {
    mode_t mode = 0;
    return entry_of(start_fd, std::move(found), mode);
  });
}

}  // namespace dockbridge::agent
