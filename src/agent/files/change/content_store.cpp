#include "agent/files/change/content_store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <vector>

#include "agent/files/revision.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_directory = "contents";
constexpr const char* k_partial_suffix = ".new";
/// An older incomplete content belongs to a process that was killed.
constexpr std::time_t k_max_partial_seconds = 600;
/// Prune after writing this fraction of the limits.
constexpr std::uint64_t k_slack_divisor = 16;

/// Different for each process, because two may store the same content at the same time.
std::string partial_name(const std::string& revision) {
  return fmt::format("{}.{}{}", revision, ::gettid(), k_partial_suffix);
}

bool is_orphaned(std::string_view name, const struct stat& info) {
  return name.ends_with(k_partial_suffix) && info.st_mtim.tv_sec + k_max_partial_seconds < std::time(nullptr);
}

/// An unnamed file with this content.
Result<Fd> file_of(std::string_view content) {
  Fd file(::memfd_create("content", MFD_CLOEXEC));
  const auto written = file ? write_all(file.get(), content) : fail(errno_error("Cannot read a stored content"));
  return written ? Result<Fd>(std::move(file)) : fail(written.error());
}

Result<void> copy_file(int from, int to) {
  off_t offset = 0;
  while (true) {
    constexpr std::size_t k_max_bytes = 1U << 30U;
    const ssize_t copied = ::sendfile(to, from, &offset, k_max_bytes);
    if (copied == 0) {
      return {};
    }
    if (copied < 0 && errno != EINTR) {
      return fail(errno_error("Cannot copy"));
    }
  }
}

}  // namespace

Result<ContentStore> ContentStore::open(int state_fd, Limits limits) {
  ::mkdirat(state_fd, k_directory, 0700);
  Fd directory(::openat(state_fd, k_directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return directory ? Result<ContentStore>(ContentStore(state_fd, std::move(directory), limits))
                   : fail(errno_error("Cannot open the content store"));
}

bool ContentStore::has(const std::string& revision, std::uint64_t size) const {
  struct stat info {};
  return ::fstatat(m_directory.get(), revision.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
         static_cast<std::uint64_t>(info.st_size) == size &&
         // Marks it as recently used.
         ::utimensat(m_directory.get(), revision.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Fd> ContentStore::create(const std::string& revision, std::uint64_t size) {
  if (size > max_content_bytes()) {
    return fail(ErrorCode::too_large, fmt::format("{} bytes exceed the store of earlier contents", size));
  }
  m_since_prune += size;
  ++m_puts_since_prune;
  if (!m_pruned || m_since_prune > m_limits.bytes / k_slack_divisor ||
      m_puts_since_prune > m_limits.count / k_slack_divisor) {
    prune();
  }
  const std::string name = partial_name(revision);
  Fd file = create_anew_at(m_directory.get(), name);
  return file ? Result<Fd>(std::move(file)) : fail(errno_error("Cannot store a content"));
}

Result<void> ContentStore::finish(const std::string& revision, const Result<void>& written) const {
  const std::string name = partial_name(revision);
  if (!written) {
    ::unlinkat(m_directory.get(), name.c_str(), 0);
    return written;
  }
  return ::renameat(m_directory.get(), name.c_str(), m_directory.get(), revision.c_str()) == 0
             ? Result<void>()
             : fail(errno_error("Cannot store a content"));
}

Result<void> ContentStore::put(const std::string& revision, std::string_view content) {
  if (!m_pruned) {
    prune();  // contents of an earlier version are bounded, too
  }
  if (m_pack.put(revision, content) || has(revision, content.size())) {
    return {};
  }
  const auto file = create(revision, content.size());
  return file ? finish(revision, write_all(file->get(), content)) : fail(file.error());
}

Result<void> ContentStore::put_file(const std::string& revision, int fd, std::uint64_t size) {
  if (has(revision, size)) {
    return {};
  }
  const auto file = create(revision, size);
  return file ? finish(revision, copy_file(fd, file->get())) : fail(file.error());
}

std::optional<std::string> ContentStore::get_packed(const std::string& revision) {
  auto content = m_pack.get(revision);
  if (content && revision_of(*content) != revision) {
    m_pack.forget(revision);
    return std::nullopt;
  }
  return content;
}

Result<Fd> ContentStore::open_content(const std::string& revision) {
  if (const auto packed = get_packed(revision)) {
    return file_of(*packed);
  }
  // The revision comes from a client and must not be used as a path.
  Fd file = is_revision(revision) ? open_regular_at(m_directory.get(), revision, O_RDONLY) : Fd();
  struct stat info {};
  // A larger file is forged: the agent never stores one. Hashing a sparse file of terabytes would take hours.
  const bool is_kept =
      file && ::fstat(file.get(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) <= max_content_bytes();
  return is_kept ? Result<Fd>(std::move(file))
                 : fail(ErrorCode::content_expired, "Earlier content is no longer stored",
                        "Storage for replaced content is limited; write the file again");
}

Result<std::string> ContentStore::get(const std::string& revision, std::size_t limit) {
  const auto too_large = [&] { return fail(ErrorCode::too_large, fmt::format("Content exceeds {} bytes", limit)); };
  if (auto packed = get_packed(revision)) {
    return packed->size() <= limit ? Result<std::string>(std::move(*packed)) : too_large();
  }
  const auto file = open_content(revision);
  if (!file) {
    return fail(file.error());
  }
  std::string content;
  const auto read = read_pieces(file->get(), [&](std::string_view piece) {
    content += piece;
    return content.size() <= limit ? Result<void>() : too_large();
  });
  if (!read) {
    return fail(read.error());
  }
  // The name of a file must be the revision of its content.
  return revision_of(content) == revision ? Result<std::string>(std::move(content))
                                          : fail(ErrorCode::content_damaged, "The stored earlier content is damaged");
}

void ContentStore::prune() {
  struct Kept {
    timespec used;
    std::uint64_t bytes;
    std::string name;
  };
  std::vector<Kept> kept;
  std::uint64_t bytes = 0;
  const int copy = ::openat(m_directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(copy >= 0 ? ::fdopendir(copy) : nullptr, ::closedir);
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    struct stat info {};
    if (::fstatat(m_directory.get(), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
      continue;
    }
    if (is_orphaned(item->d_name, info)) {
      ::unlinkat(m_directory.get(), item->d_name, 0);
    } else {
      kept.push_back({info.st_mtim, static_cast<std::uint64_t>(info.st_size), item->d_name});
      bytes += kept.back().bytes;
    }
  }
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  std::size_t count = kept.size();
  const std::uint64_t room = m_limits.bytes - m_limits.bytes / k_slack_divisor;
  for (const Kept& oldest : kept) {
    if (bytes + m_since_prune <= room && count <= m_limits.count) {
      break;
    }
    ::unlinkat(m_directory.get(), oldest.name.c_str(), 0);
    bytes -= oldest.bytes;
    --count;
  }
  m_since_prune = 0;
  m_puts_since_prune = 0;
  m_pruned = true;
}

}  // namespace dockbridge::agent
