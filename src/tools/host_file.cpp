#include "tools/host_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "util/beneath.hpp"
#include "util/temporary_name.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

constexpr mode_t k_permissions = 0777;

Error exists(const std::string& path) {
  return {ErrorCode::host_file_exists, fmt::format("File exists on the host: {}", printable_line(path, 300))};
}

}  // namespace

Result<Fd> open_host_file(const HostPlace& place, const std::string& path) {
  const Fd handle = open_confined(place.directory, place.way, O_PATH, Links::none);
  struct stat info {};
  if (!handle || ::fstat(handle.get(), &info) != 0) {
    return fail(host_error(path, errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::host_file, fmt::format("Not a regular file on the host: {}", printable_line(path, 300)),
                "Only files can be copied; pack directories first");
  }
  Fd file(::open(fmt::format("/proc/self/fd/{}", handle.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  return file ? Result<Fd>(std::move(file)) : fail(host_error(path, errno));
}

Result<HostFile> HostFile::create(const HostPlace& place, const std::string& path, bool overwrite) {
  const std::size_t slash = place.way.rfind('/');
  HostFile file;
  file.m_path = path;
  file.m_overwrite = overwrite;
  file.m_name = slash == std::string::npos ? place.way : place.way.substr(slash + 1);
  file.m_directory = open_confined(place.directory, slash == std::string::npos ? "." : place.way.substr(0, slash),
                                   O_RDONLY | O_DIRECTORY, Links::none);
  if (!file.m_directory) {
    return fail(host_error(path, errno));
  }
  if (file.m_name.empty() || file.m_name == "." || file.m_name == "..") {
    return fail(ErrorCode::host_file, "The path on the host names a directory");
  }
  struct stat there {};
  if (!overwrite && ::fstatat(file.m_directory.get(), file.m_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    return fail(exists(path));
  }
  remove_orphans(file.m_directory.get());
  std::string temporary = new_temporary_name();
  file.m_file = open_confined(file.m_directory.get(), temporary, O_WRONLY | O_CREAT | O_EXCL, Links::none, 0600);
  if (!file.m_file) {
    return fail(host_error(path, errno));
  }
  lock_temporary(file.m_file.get());
  file.m_temporary = std::move(temporary);
  return file;
}

HostFile::HostFile(HostFile&& other) noexcept
    : m_path(std::move(other.m_path)),
      m_directory(std::move(other.m_directory)),
      m_name(std::move(other.m_name)),
      m_temporary(std::exchange(other.m_temporary, "")),
      m_file(std::move(other.m_file)),
      m_overwrite(other.m_overwrite) {}

HostFile::~HostFile() {
  if (!m_temporary.empty()) {
    ::unlinkat(m_directory.get(), m_temporary.c_str(), 0);
  }
}

Result<void> HostFile::resize(std::uint64_t size) {
  return ::ftruncate(m_file.get(), static_cast<off_t>(size)) == 0 ? Result<void>() : fail(host_error(m_path, errno));
}

Result<void> HostFile::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(m_file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) {
      return fail(host_error(m_path, errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    offset += static_cast<std::uint64_t>(std::max<ssize_t>(written, 0));
  }
  return {};
}

Result<void> HostFile::finish(mode_t mode) {
  struct stat there {};
  const bool is_replaced = m_overwrite &&
                           ::fstatat(m_directory.get(), m_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISREG(there.st_mode);
  // A set-user-id bit is never kept: new content drops it, as any write does.
  if (::fchmod(m_file.get(), (is_replaced ? there.st_mode : mode) & k_permissions) != 0 || ::fsync(m_file.get()) != 0) {
    return fail(host_error(m_path, errno));
  }
  unlock_temporary(m_file.get());
  if (::renameat2(m_directory.get(), m_temporary.c_str(), m_directory.get(), m_name.c_str(),
                  m_overwrite ? 0U : RENAME_NOREPLACE) != 0) {
    return errno == EEXIST ? fail(exists(m_path)) : fail(host_error(m_path, errno));
  }
  m_temporary.clear();
  ::fsync(m_directory.get());
  return {};
}

}  // namespace dockbridge::tools
