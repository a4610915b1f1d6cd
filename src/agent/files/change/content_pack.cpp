#include "agent/files/change/content_pack.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "agent/files/revision.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_recent_name = "recent.contents";
constexpr const char* k_older_name = "older.contents";

/// Precedes each content.
struct Head {
  std::array<char, k_revision_length> revision;
  std::uint64_t size;
};

/// Held during one addition. No process waits for it.
class Lock {
 public:
  explicit Lock(int fd) : m_fd(::flock(fd, LOCK_EX | LOCK_NB) == 0 ? fd : -1) {}
  ~Lock() {
    if (m_fd >= 0) {
      ::flock(m_fd, LOCK_UN);
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  explicit operator bool() const { return m_fd >= 0; }

 private:
  int m_fd;
};

off_t size_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? info.st_size : 0;
}

}  // namespace

ContentPack::Volume ContentPack::Volume::open(int directory_fd, const char* name, int flags) {
  Volume volume;
  volume.file = open_regular_at(directory_fd, name, O_RDWR | flags);
  return volume;
}

bool ContentPack::Volume::is_named(int directory_fd, const char* name) const {
  struct stat mine {};
  struct stat named {};
  return file && ::fstat(file.get(), &mine) == 0 && ::fstatat(directory_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

void ContentPack::Volume::update(const Limits& limits, bool is_locked) {
  const off_t size = file ? size_of(file.get()) : 0;
  if (is_locked) {
    end = locked_end;
  }
  if (size < end) {  // another process has truncated it
    end = 0;
    locked_end = 0;
    places.clear();
  }
  while (end < size && static_cast<std::uint64_t>(end) < limits.bytes && places.size() < limits.count) {
    Head head{};
    const std::string_view revision(head.revision.data(), head.revision.size());
    const bool is_head = ::pread(file.get(), &head, sizeof head, end) == sizeof head && is_revision(revision) &&
                         head.size <= k_max_content_bytes;
    const off_t begin = end + static_cast<off_t>(sizeof head);
    if (!is_head || begin + static_cast<off_t>(head.size) > size) {
      break;
    }
    places.insert_or_assign(std::string(revision), Place{begin, head.size});
    end = begin + static_cast<off_t>(head.size);
  }
  if (is_locked) {
    locked_end = end;
  }
}

bool ContentPack::Volume::has(const std::string& revision, std::size_t size) const {
  const auto found = places.find(revision);
  return found != places.end() && found->second.size == size;
}

bool ContentPack::Volume::has_room(const Limits& limits, std::size_t size) const {
  return places.size() < limits.count && static_cast<std::uint64_t>(end) + sizeof(Head) + size <= limits.bytes;
}

bool ContentPack::Volume::add(const std::string& revision, std::string_view content) {
  Head head{};
  revision.copy(head.revision.data(), head.revision.size());
  head.size = content.size();
  const std::array<iovec, 2> parts = {iovec{&head, sizeof head},
                                      iovec{const_cast<char*>(content.data()), content.size()}};
  // Remove what a killed process has added in part. Otherwise a rest of it would stay behind the new content.
  if (size_of(file.get()) != end && ::ftruncate(file.get(), end) != 0) {
    return false;
  }
  const auto length = static_cast<off_t>(sizeof head + content.size());
  if (::pwritev(file.get(), parts.data(), parts.size(), end) != length) {
    [[maybe_unused]] const int cut = ::ftruncate(file.get(), end);
    return false;
  }
  places.insert_or_assign(revision, Place{end + static_cast<off_t>(sizeof head), content.size()});
  end += length;
  locked_end = end;
  return true;
}

std::optional<std::string> ContentPack::Volume::get(const std::string& revision) const {
  const auto found = places.find(revision);
  if (found == places.end()) {
    return std::nullopt;
  }
  std::string content(found->second.size, '\0');
  const ssize_t got = ::pread(file.get(), content.data(), content.size(), found->second.offset);
  return got == static_cast<ssize_t>(content.size()) ? std::optional(std::move(content)) : std::nullopt;
}

void ContentPack::refresh(Volume& volume, const char* name) const {
  if (!volume.is_named(m_directory_fd, name)) {
    volume = Volume::open(m_directory_fd, name, 0);
  }
  volume.update(m_limits, false);
}

bool ContentPack::rotate() {
  // Truncated, because another process that has it open would keep its blocks.
  const Fd older = open_regular_at(m_directory_fd, k_older_name, O_RDWR);
  const bool is_clear = !older || ::ftruncate(older.get(), 0) == 0;
  if (!is_clear || ::renameat(m_directory_fd, k_recent_name, m_directory_fd, k_older_name) != 0) {
    return false;
  }
  m_older = std::exchange(m_recent, {});
  return true;
}

bool ContentPack::put(const std::string& revision, std::string_view content) {
  if (content.size() > k_max_content_bytes || sizeof(Head) + content.size() > m_limits.bytes) {
    return false;
  }
  for (bool is_full = false;; is_full = true) {
    const bool is_current = m_recent.is_named(m_directory_fd, k_recent_name);
    if (is_current && m_recent.has(revision, content.size())) {
      return true;
    }
    if (!is_current) {
      m_recent = Volume::open(m_directory_fd, k_recent_name, O_CREAT);
    }
    const Lock lock(m_recent.file.get());
    if (!lock || !m_recent.is_named(m_directory_fd, k_recent_name)) {
      return false;
    }
    m_recent.update(m_limits, true);
    if (m_recent.has(revision, content.size())) {
      return true;
    }
    if (m_recent.has_room(m_limits, content.size())) {
      return m_recent.add(revision, content);
    }
    if (is_full || !rotate()) {
      return false;
    }
  }
}

std::optional<std::string> ContentPack::get(const std::string& revision) {
  refresh(m_recent, k_recent_name);
  if (auto content = m_recent.get(revision)) {
    return content;
  }
  refresh(m_older, k_older_name);
  return m_older.get(revision);
}

void ContentPack::forget(const std::string& revision) {
  m_recent.places.erase(revision);
  m_older.places.erase(revision);
}

}  // namespace dockbridge::agent
