#include "agent/files/write_journal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "agent/files/revision.hpp"
#include "agent/files/temporary_file.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_what = "the state directory's journal of writes";
constexpr std::string_view k_prefix = "writing_";
constexpr std::size_t k_most_bytes = 64 * 1024;
constexpr std::size_t k_most_restored = 256ULL * 1024 * 1024;
constexpr char k_temporary = 'T';
constexpr char k_in_place = 'P';

/// Calls `visit` for each journal whose process is gone, until it returns false.
void visit_leftovers(int state_fd, const std::function<bool(const std::string& name, int fd)>& visit) {
  const int copy = ::openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(copy >= 0 ? ::fdopendir(copy) : nullptr, ::closedir);
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    const std::string name = item->d_name;
    if (!name.starts_with(k_prefix)) {
      continue;
    }
    const Fd file(::openat(state_fd, name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && !visit(name, file.get())) {
      return;
    }
  }
}

/// Whether a file was on its way from one content to the other: the start of the new one, then what was there before.
bool is_mixture(std::string_view now, std::string_view before, std::string_view after) {
  const auto new_part =
      static_cast<std::size_t>(std::mismatch(now.begin(), now.end(), after.begin(), after.end()).first - now.begin());
  const auto old_part = static_cast<std::size_t>(
      std::mismatch(now.rbegin(), now.rend(), before.rbegin(), before.rend()).first - now.rbegin());
  return now.size() == std::max(before.size(), new_part) && new_part + old_part >= now.size();
}

void put_back(const std::string& path, const std::string& revision, const std::string& newer,
              const ContentStore& store) {
  const auto before = store.get(revision, k_most_restored);
  const auto after = before ? store.get(newer, k_most_restored) : fail(before.error());
  const auto now = after ? read_file_at(AT_FDCWD, path, k_most_restored) : fail(after.error());
  // What others have made of it since is theirs.
  if (!now || *now == *after || !is_mixture(*now, *before, *after)) {
    return;
  }
  const Fd file(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (file && write_all(file.get(), *before)) {
    [[maybe_unused]] const int cut = ::ftruncate(file.get(), static_cast<off_t>(before->size()));
    ::fsync(file.get());
  }
}

}  // namespace

WriteJournal::WriteJournal(int state_fd, std::string name, Fd file)
    : m_state_fd(state_fd), m_name(std::move(name)), m_file(std::move(file)) {}

WriteJournal::WriteJournal(WriteJournal&& other) noexcept
    : m_state_fd(other.m_state_fd), m_name(std::move(other.m_name)), m_file(std::move(other.m_file)) {}

WriteJournal::~WriteJournal() {
  if (m_file) {
    ::unlinkat(m_state_fd, m_name.c_str(), 0);
  }
}

Result<WriteJournal> WriteJournal::open(int state_fd) {
  static int count = 0;
  while (true) {
    std::string name = fmt::format("{}{}_{}_{}", k_prefix, ::getpid(), unix_milliseconds_now(), ++count);
    Fd file(::openat(state_fd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    struct stat info {};
    if (!file || ::flock(file.get(), LOCK_EX) != 0 || ::fstat(file.get(), &info) != 0) {
      return fail(file_error(k_what, errno));
    }
    if (info.st_nlink > 0) {  // else another process took it for a leftover, before the lock
      return WriteJournal(state_fd, std::move(name), std::move(file));
    }
  }
}

Result<void> WriteJournal::note(const std::string& line) {
  const ssize_t written = ::pwrite(m_file.get(), line.data(), line.size(), 0);
  if (written == static_cast<ssize_t>(line.size())) {
    return {};
  }
  const int number = written < 0 ? errno : ENOSPC;
  done();
  return fail(file_error(k_what, number));
}

Result<void> WriteJournal::begin_temporary(const std::string& path) {
  return note(k_temporary + path);
}

Result<void> WriteJournal::begin_in_place(const std::string& path, const std::string& before,
                                          const std::string& after) {
  return note(k_in_place + before + after + path);
}

void WriteJournal::done() {
  [[maybe_unused]] const int cut = ::ftruncate(m_file.get(), 0);
}

bool WriteJournal::has_leftovers(int state_fd) {
  bool found = false;
  visit_leftovers(state_fd, [&](const std::string&, int) {
    found = true;
    return false;
  });
  return found;
}

void WriteJournal::recover(int state_fd, const ContentStore& store) {
  visit_leftovers(state_fd, [&](const std::string& name, int) {
    const std::string note = read_file_at(state_fd, name, k_most_bytes).value_or("");
    const std::string rest = note.empty() ? "" : note.substr(1);
    if (note.starts_with(k_temporary) && TemporaryFile::is_name_of_one(rest.substr(rest.rfind('/') + 1))) {
      ::unlink(rest.c_str());
    } else if (note.starts_with(k_in_place) && rest.size() > 2 * k_revision_length) {
      put_back(rest.substr(2 * k_revision_length), rest.substr(0, k_revision_length),
               rest.substr(k_revision_length, k_revision_length), store);
    }
    ::unlinkat(state_fd, name.c_str(), 0);
    return true;
  });
}

}  // namespace dockbridge::agent
