#include "util/temporary_name.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <memory>

#include "util/fd.hpp"

namespace dockbridge {

namespace {

constexpr std::string_view k_prefix = ".dockbridge-";
constexpr std::string_view k_suffix = ".tmp";
constexpr std::size_t k_digits = 16;
constexpr int k_max_entries = 100'000;

bool is_candidate(const struct stat& info, std::chrono::seconds age) {
  return S_ISREG(info.st_mode) && info.st_nlink == 1 && info.st_uid == ::geteuid() &&
         info.st_mtim.tv_sec + age.count() <= ::time(nullptr);
}

void remove_if_orphan(int directory_fd, const char* name, std::chrono::seconds age) {
  // O_PATH first, because opening a device or a pipe could have an effect.
  const Fd handle(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!handle || ::fstat(handle.get(), &info) != 0 || !is_candidate(info, age)) {
    return;
  }
  const Fd file(::open(fmt::format("/proc/self/fd/{}", handle.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return;  // in use, or on a file system without locks
  }
  // Check again under the lock, because the owning process may have renamed the file since.
  struct stat now {};
  if (::fstatat(directory_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == info.st_dev &&
      now.st_ino == info.st_ino && is_candidate(now, age)) {
    ::unlinkat(directory_fd, name, 0);
  }
}

}  // namespace

std::string new_temporary_name() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    number = static_cast<std::uint64_t>(::getpid());
  }
  return fmt::format("{}{:016x}{}", k_prefix, number, k_suffix);
}

bool is_temporary_name(std::string_view name) {
  return name.size() == k_prefix.size() + k_digits + k_suffix.size() && name.starts_with(k_prefix) &&
         name.ends_with(k_suffix) &&
         name.substr(k_prefix.size(), k_digits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void lock_temporary(int fd) {
  ::flock(fd, LOCK_EX | LOCK_NB);
}

void unlock_temporary(int fd) {
  ::flock(fd, LOCK_UN);
}

void remove_orphans(int directory_fd, std::chrono::seconds age) {
  const int copy = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(copy >= 0 ? ::fdopendir(copy) : nullptr, ::closedir);
  for (int entries = 0; directory && entries < k_max_entries; ++entries) {
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) {
      return;
    }
    if (is_temporary_name(entry->d_name)) {
      remove_if_orphan(directory_fd, entry->d_name, age);
    }
  }
}

}  // namespace dockbridge
