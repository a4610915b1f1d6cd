#include "agent/files/change/write_journal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "agent/files/change/in_place.hpp"
#include "agent/files/file_space.hpp"
#include "agent/files/revision.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/temporary_name.hpp"

namespace dockbridge::agent {

namespace {

constexpr const char* k_description = "the state directory's journal of writes";
constexpr std::string_view k_prefix = "writing_";
constexpr std::size_t k_max_bytes = 4 * 1024 * 1024;
/// Attempts to create and lock a journal before an error is returned.
constexpr int k_max_attempts = 100;
constexpr char k_temporary = 'T';
constexpr char k_in_place = 'P';
constexpr char k_set = 'S';
constexpr std::size_t k_size_digits = 16;

/// A killed process keeps its locks until it has left the kernel, which a slow disk can delay.
constexpr milliseconds k_max_wait{2000};
constexpr milliseconds k_check_interval{5};

/// Calls `visit` for each journal until it returns false.
void visit_journals(int state_fd, const std::function<bool(const std::string& name, int fd)>& visit) {
  const int copy = ::openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(copy >= 0 ? ::fdopendir(copy) : nullptr, ::closedir);
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    const std::string name = item->d_name;
    if (!name.starts_with(k_prefix)) {
      continue;
    }
    const Fd file = open_regular_at(state_fd, name, O_RDWR);
    if (file && !visit(name, file.get())) {
      return;
    }
  }
}

/// Calls `visit` for each journal whose process has ended, until it returns false.
void visit_leftovers(int state_fd, const std::function<bool(const std::string& name)>& visit) {
  visit_journals(state_fd,
                 [&](const std::string& name, int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) != 0 || visit(name); });
}

/// Returns whether the entry is done: the file is restored, or must not be changed.
bool restore_mixture(const std::string& path, const std::string& revision, const std::string& newer,
                     ContentStore& store) {
  const auto before = store.open_content(revision);
  const auto after = before ? store.open_content(newer) : fail(before.error());
  const Fd file(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  const bool is_there = file && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  const bool are_whole =
      after && revision_of_file(before->get()) == revision && revision_of_file(after->get()) == newer;
  // A file that others have changed since is left alone.
  return !are_whole || !is_there || !is_mixture(file.get(), before->get(), after->get()) ||
         write_over(file.get(), before->get(), path).has_value();
}

/// The entries of a set. Empty if the note is incomplete: then no file was changed yet.
std::vector<SetEntry> set_entries(std::string_view note) {
  std::size_t size = 0;
  const auto digits = note.substr(0, k_size_digits);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
  note.remove_prefix(digits.size());
  std::vector<SetEntry> entries;
  if (parsed.ec != std::errc() || size != note.size()) {
    return entries;
  }
  while (note.size() > 2 * k_revision_length) {
    const std::size_t end = note.find('\0', 2 * k_revision_length);
    entries.push_back({std::string(note.substr(2 * k_revision_length, end - 2 * k_revision_length)),
                       std::string(note.substr(0, k_revision_length)),
                       std::string(note.substr(k_revision_length, k_revision_length))});
    note.remove_prefix(end == std::string_view::npos ? note.size() : end + 1);
  }
  return entries;
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
  static std::atomic<int> count{0};
  for (int attempt = 0; attempt < k_max_attempts; ++attempt) {
    std::string name = fmt::format("{}{}_{}_{}", k_prefix, ::getpid(), unix_milliseconds_now(), ++count);
    Fd file(::openat(state_fd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    struct stat info {};
    const bool is_locked = file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && (!file || errno != EWOULDBLOCK)) {
      return fail(file_error(k_description, errno));
    }
    // Another process may have removed it as a leftover before it was locked. The lock is not waited for, because the
    // other process may be hostile.
    if (is_locked && ::fstat(file.get(), &info) == 0 && info.st_nlink > 0) {
      return WriteJournal(state_fd, std::move(name), std::move(file));
    }
    ::unlinkat(state_fd, name.c_str(), 0);
  }
  return fail(file_error(k_description, EBUSY));
}

Result<void> WriteJournal::write(const std::string& entry) {
  const ssize_t written = ::pwrite(m_file.get(), entry.data(), entry.size(), 0);
  if (written == static_cast<ssize_t>(entry.size())) {
    return {};
  }
  const int number = written < 0 ? errno : ENOSPC;
  done();
  return fail(file_error(k_description, number));
}

Result<void> WriteJournal::begin_temporary(const std::string& path) {
  return write(k_temporary + path);
}

Result<void> WriteJournal::begin_in_place(const std::string& path, const std::string& before,
                                          const std::string& after) {
  return write(k_in_place + before + after + path);
}

Result<void> WriteJournal::begin_set(std::span<const SetEntry> entries) {
  std::string list;
  for (const SetEntry& entry : entries) {
    list += entry.before + entry.after + entry.path + '\0';
  }
  const std::string line = k_set + fmt::format("{:016x}", list.size()) + list;
  return line.size() <= k_max_bytes ? write(line) : fail(file_error(k_description, EFBIG));
}

Result<void> WriteJournal::restore(const SetEntry& entry, ContentStore& store) {
  const Fd file(::open(entry.path.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!file && errno != ENOENT && errno != ELOOP) {
    return fail(file_error(entry.path, errno));
  }
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return {};
  }
  const auto before = store.open_content(entry.before);
  const auto after = before ? store.open_content(entry.after) : fail(before.error());
  if (!after || revision_of_file(before->get()) != entry.before || revision_of_file(after->get()) != entry.after) {
    return fail(ErrorCode::no_backup, "The old content is not stored any more");
  }
  return needs_restore(file.get(), before->get(), after->get()) ? write_over(file.get(), before->get(), entry.path)
                                                                : Result<void>();
}

void WriteJournal::done() {
  [[maybe_unused]] const int cut = ::ftruncate(m_file.get(), 0);
}

bool WriteJournal::has_leftovers(int state_fd) {
  bool found = false;
  visit_leftovers(state_fd, [&](const std::string&) {
    found = true;
    return false;
  });
  return found;
}

bool WriteJournal::is_change_under_way(int state_fd) {
  bool found = false;
  visit_journals(state_fd, [&](const std::string&, int fd) {
    char kind = k_temporary;
    found = ::pread(fd, &kind, 1, 0) == 1 && kind != k_temporary && ::flock(fd, LOCK_EX | LOCK_NB) != 0;
    return !found;
  });
  return found;
}

void WriteJournal::recover(int state_fd, ContentStore& store) {
  const auto deadline = Deadline::after(k_max_wait);
  while (is_change_under_way(state_fd) && !deadline.passed()) {
    std::this_thread::sleep_for(k_check_interval);
  }
  visit_leftovers(state_fd, [&](const std::string& name) {
    const std::string note = read_regular_at(state_fd, name, k_max_bytes).value_or("");
    const std::string rest = note.empty() ? "" : note.substr(1);
    bool done = true;
    if (note.starts_with(k_temporary) && is_temporary_name(rest.substr(rest.rfind('/') + 1))) {
      ::unlink(rest.c_str());
    } else if (note.starts_with(k_in_place) && rest.size() > 2 * k_revision_length) {
      done = restore_mixture(rest.substr(2 * k_revision_length), rest.substr(0, k_revision_length),
                             rest.substr(k_revision_length, k_revision_length), store);
    } else if (note.starts_with(k_set)) {
      for (const SetEntry& entry : set_entries(rest)) {
        const auto restored = restore(entry, store);
        done = done && (restored || restored.error().code == ErrorCode::no_backup);
      }
    }
    if (done) {
      ::unlinkat(state_fd, name.c_str(), 0);
    }
    return true;
  });
}

}  // namespace dockbridge::agent
