#include "agent/files/content_pack.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "agent/files/revision.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_recent_name = "recent.contents";
constexpr const char* k_older_name = "older.contents";

/// What comes before each content.
struct Head {
  std::array<char, k_revision_length> revision;
  std::uint64_t size;
};

/// Held for the time of one addition, so nobody has to wait for it.
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
  volume.file.reset(::openat(directory_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600));
  volume.read_on();
  return volume;
}

bool ContentPack::Volume::is_named(int directory_fd, const char* name) const {
  struct stat mine {};
  struct stat named {};
  return file && ::fstat(file.get(), &mine) == 0 && ::fstatat(directory_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

void ContentPack::Volume::read_on() {
  const off_t size = file ? size_of(file.get()) : 0;
  while (end < size) {
    Head head{};
    const std::string_view revision(head.revision.data(), head.revision.size());
    const bool is_head = ::pread(file.get(), &head, sizeof head, end) == sizeof head && is_revision(revision) &&
                         head.size <= k_most_content_bytes;
    const off_t begin = end + static_cast<off_t>(sizeof head);
    if (!is_head || begin + static_cast<off_t>(head.size) > size) {
      return;
    }
    places.insert_or_assign(std::string(revision), Place{begin, head.size});
    end = begin + static_cast<off_t>(head.size);
  }
}

bool ContentPack::Volume::add(const std::string& revision, std::string_view content) {
  Head head{};
  revision.copy(head.revision.data(), head.revision.size());
  head.size = content.size();
  const std::array<iovec, 2> parts = {iovec{&head, sizeof head},
                                      iovec{const_cast<char*>(content.data()), content.size()}};
  // What a killed process has added in part goes first: some of it would stay behind what is added now.
  if (size_of(file.get()) != end && ::ftruncate(file.get(), end) != 0) {
    return false;
  }
  const auto length = static_cast<off_t>(sizeof head + content.size());
  if (::pwritev(file.get(), parts.data(), parts.size(), end) != length) {
    [[maybe_unused]] const int cut = ::ftruncate(file.get(), end);
    return false;
  }
  read_on();
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

void ContentPack::refresh() {
  if (m_recent.is_named(m_directory_fd, k_recent_name)) {
    m_recent.read_on();
    return;
  }
  m_recent = Volume::open(m_directory_fd, k_recent_name, 0);
  m_older = Volume::open(m_directory_fd, k_older_name, 0);
}

bool ContentPack::has_room(std::size_t size) const {
  return m_recent.places.size() < m_limits.count &&
         static_cast<std::uint64_t>(m_recent.end) + sizeof(Head) + size <= m_limits.bytes;
}

/// Makes the recent one the older one, unless another process is just adding to it, or has done the same.
void ContentPack::turn_over() {
  if (const Lock lock(m_recent.file.get()); lock && m_recent.is_named(m_directory_fd, k_recent_name)) {
    ::renameat(m_directory_fd, k_recent_name, m_directory_fd, k_older_name);
  }
  refresh();
}

bool ContentPack::put(const std::string& revision, std::string_view content) {
  refresh();
  if (m_recent.places.contains(revision)) {
    return true;
  }
  if (content.size() > k_most_content_bytes || sizeof(Head) + content.size() > m_limits.bytes) {
    return false;
  }
  if (!has_room(content.size())) {
    turn_over();
  }
  if (!m_recent.file) {
    m_recent = Volume::open(m_directory_fd, k_recent_name, O_CREAT);
  }
  const Lock lock(m_recent.file.get());
  if (!lock || !m_recent.is_named(m_directory_fd, k_recent_name)) {
    return false;
  }
  m_recent.read_on();  // nobody adds to it now
  return has_room(content.size()) && m_recent.add(revision, content);
}

std::optional<std::string> ContentPack::get(const std::string& revision) {
  refresh();
  auto content = m_recent.get(revision);
  return content ? std::move(content) : m_older.get(revision);
}

void ContentPack::forget(const std::string& revision) {
  m_recent.places.erase(revision);
  m_older.places.erase(revision);
}

}  // namespace dockbridge::agent
