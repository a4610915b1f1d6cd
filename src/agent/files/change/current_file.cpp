#include "agent/files/change/current_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "util/clock.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

constexpr milliseconds k_max_lock_wait{5000};
constexpr milliseconds k_lock_interval{5};

/// Locks the directory, so that two changes by these tools do not interfere.
Result<void> lock(const FilePlace& place, LockedDirectories* locked) {
  if (locked != nullptr) {
    struct stat info {};
    if (::fstat(place.directory.get(), &info) != 0) {
      return fail(file_error(place.path, errno));
    }
    const auto [entry, is_new] = locked->try_emplace({info.st_dev, info.st_ino});
    if (!is_new) {
      return {};
    }
    entry->second.reset(::fcntl(place.directory.get(), F_DUPFD_CLOEXEC, 0));  // shares the lock
  }
  const auto deadline = Deadline::after(k_max_lock_wait);
  while (::flock(place.directory.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return {};  // a file system without locks
    }
    if (deadline.passed()) {
      return fail(ErrorCode::directory_locked,
                  fmt::format("Another process has locked the directory of {}", displayed_path(place.path)));
    }
    std::this_thread::sleep_for(k_lock_interval);
  }
  return {};
}

}  // namespace

Result<CurrentFile> find_current(const FileSpace& space, const std::string& path, Absent absent,
                                 LockedDirectories* locked_directories) {
  CurrentFile current;
  auto found = space.find(path);
  if (!found && (found.error().code != ErrorCode::no_such_file || absent == Absent::is_an_error)) {
    return fail(found.error());
  }
  if (found) {
    if (auto regular = expect_regular(*found); !regular) {
      return fail(regular.error());
    }
    current.file = std::move(*found);
  }
  auto place = current.file ? space.place_of(*current.file) : space.place_for(path, absent == Absent::is_created);
  if (!place) {
    return fail(place.error());
  }
  current.place = std::move(*place);
  if (auto locked = lock(current.place, locked_directories); !locked) {
    return fail(locked.error());
  }
  if (!current.file) {
    return current;
  }
  // Again, because it may have changed before it was locked.
  auto locked = space.find(current.place.path);
  if (!locked) {
    return fail(locked.error());
  }
  current.file = std::move(*locked);
  if (auto regular = expect_regular(*current.file); !regular) {
    return fail(regular.error());
  }
  if (auto writable = expect_writable(*current.file); !writable) {
    return fail(writable.error());
  }
  if (static_cast<std::uint64_t>(current.file->info.st_size) > k_max_revised_bytes) {
    return fail(ErrorCode::too_large,
                fmt::format("File is too large: {}, {}. The limit is {}", displayed_path(path),
                            human_bytes(static_cast<std::uint64_t>(current.file->info.st_size)),
                            human_bytes(k_max_revised_bytes)),
                "Change or replace it with a command");
  }
  auto content = read_content(*current.file, {.limit = 0});
  if (!content) {
    return fail(content.error());
  }
  current.content = std::move(*content);
  return current;
}

}  // namespace dockbridge::agent
