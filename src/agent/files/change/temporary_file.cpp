#include "agent/files/change/temporary_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "util/temporary_name.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::agent {

namespace {

constexpr mode_t k_new_file_mode = 0666;  // less the umask
constexpr std::size_t k_max_attribute_bytes = 64 * 1024;
constexpr std::size_t k_max_names_bytes = 1000;

mode_t umask_now() {
  const mode_t mask = ::umask(022);
  ::umask(mask);
  return mask;
}

bool is_there(const Fd& directory) {
  struct stat info {};
  return ::fstat(directory.get(), &info) == 0 && info.st_nlink > 0;
}

/// Copies the extended attributes of a file. Returns the names of those that could not be copied.
std::string copy_attributes(int from, int to) {
  ::fremovexattr(to, "system.posix_acl_access");  // inherited from the directory
  std::string names(k_max_attribute_bytes, '\0');
  const ssize_t length = ::flistxattr(from, names.data(), names.size());
  names.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  std::string lost;
  std::string value(k_max_attribute_bytes, '\0');
  for (std::size_t at = 0; at < names.size();) {
    const std::string name = names.c_str() + at;
    at += name.size() + 1;
    const ssize_t size = ::fgetxattr(from, name.c_str(), value.data(), value.size());
    if (size < 0 || ::fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(size), 0) != 0) {
      lost += (lost.empty() ? "" : ", ") + name;
    }
  }
  return lost;
}

}  // namespace

TemporaryFile::TemporaryFile(const FilePlace& place, WriteJournal& journal, std::string name, Fd file)
    : m_place(&place), m_journal(&journal), m_name(std::move(name)), m_file(std::move(file)) {}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : m_place(other.m_place),
      m_journal(other.m_journal),
      m_name(std::exchange(other.m_name, "")),
      m_file(std::move(other.m_file)) {}

TemporaryFile::~TemporaryFile() {
  if (!m_name.empty()) {
    ::unlinkat(m_place->directory.get(), m_name.c_str(), 0);
    m_journal->done();
  }
}

Result<TemporaryFile> TemporaryFile::create(const FilePlace& place, WriteJournal& journal, SpareFile* spare) {
  std::string name = new_temporary_name();
  const std::string directory = place.path.substr(0, place.path.rfind('/') + 1);
  if (auto noted = journal.begin_temporary(directory + name); !noted) {
    return fail(noted.error());
  }
  Fd file = spare != nullptr ? spare->take(place.directory.get(), name) : Fd();
  if (!file) {
    file.reset(::openat(place.directory.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }
  if (!file) {
    const int number = errno;
    journal.done();
    // Pseudo file systems report ENOENT for every new name.
    return fail(file_error(place.path, number == ENOENT && is_there(place.directory) ? EACCES : number));
  }
  lock_temporary(file.get());
  return TemporaryFile(place, journal, std::move(name), std::move(file));
}

Result<void> TemporaryFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(m_file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return fail(file_error(m_place->path, errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  // Starts the transfer to the disk early. `publish` waits for it.
  ::sync_file_range(m_file.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  return {};
}

std::vector<std::string> TemporaryFile::copy_metadata(const ResolvedFile* before, const std::optional<mode_t>& mode) {
  std::vector<std::string> lost;
  mode_t lost_bits = 0;  // would run the file as another user or group than before
  if (before != nullptr) {
    const uid_t owner = before->info.st_uid;
    const gid_t group = before->info.st_gid;
    if (::fchown(m_file.get(), static_cast<uid_t>(-1), group) != 0) {
      lost.push_back(fmt::format("the group ({})", group));
      lost_bits |= S_ISGID;
    }
    if (::fchown(m_file.get(), owner, static_cast<gid_t>(-1)) != 0) {
      lost.push_back(fmt::format("the owner ({})", owner));
      lost_bits |= S_ISUID;
    }
    if (const auto from = before->open_for_reading()) {
      if (const std::string names = copy_attributes(from->get(), m_file.get()); !names.empty()) {
        lost.push_back("extended attributes (" + printable_line(names, k_max_names_bytes) + ")");
      }
    }
  }
  mode_t wanted = mode ? *mode : before != nullptr ? before->info.st_mode : k_new_file_mode & ~umask_now();
  if (!mode && (wanted & lost_bits) != 0) {
    lost.emplace_back("the set-user-id or set-group-id bit, as it is another's file now");
    wanted &= ~lost_bits;
  }
  if (::fchmod(m_file.get(), wanted & wire::k_permissions) != 0) {
    lost.push_back(fmt::format("the mode ({:o})", wanted & wire::k_permissions));
  }
  return lost;
}

Result<void> TemporaryFile::publish(const ResolvedFile* before) {
  const int directory = m_place->directory.get();
  const char* to = m_place->name.c_str();
  if (::fsync(m_file.get()) != 0) {
    return fail(file_error(m_place->path, errno));
  }
  if (auto untouched = before != nullptr ? expect_untouched(*m_place, *before) : Result<void>(); !untouched) {
    return untouched;
  }
  unlock_temporary(m_file.get());
  const bool moved = before != nullptr
                         ? ::renameat(directory, m_name.c_str(), directory, to) == 0
                         : ::renameat2(directory, m_name.c_str(), directory, to, RENAME_NOREPLACE) == 0 ||
                               // For a file system without RENAME_NOREPLACE. An existing file is never overwritten.
                               (errno == EINVAL && ::linkat(directory, m_name.c_str(), directory, to, 0) == 0 &&
                                ::unlinkat(directory, m_name.c_str(), 0) == 0);
  if (!moved) {
    const int number = errno;
    return number == EEXIST                       ? fail(touched_error(m_place->path))
           : number == EBUSY && before != nullptr ? fail(ErrorCode::is_busy, "Device or resource busy")
                                                  : fail(file_error(m_place->path, number));
  }
  m_name.clear();
  m_journal->done();
  ::fsync(directory);
  return {};
}

}  // namespace dockbridge::agent
