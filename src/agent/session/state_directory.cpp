#include "agent/session/state_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "util/clock.hpp"
#include "util/file.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::string_view k_journal_prefix = "journal_";
/// Size of a journal above which the next one is begun. Searching it for one process takes little time.
constexpr off_t k_journal_turn_bytes = 128 * 1024;
/// Space for the lines of one keeper: command started, command ended, all processes ended.
constexpr off_t k_keeper_bytes = 1024;
/// Space is reserved in steps of this size, so most starts reserve nothing.
constexpr off_t k_reserve_step = 16 * 1024;
const std::string k_expired_name = "expired";
constexpr std::size_t k_max_expired_bytes = 512 * 1024;

/// Opens the parent directory of `path` if no other user can replace the parent itself or this user's entries in it.
/// This is required because keepers open the state directory by its path, and shells run long commands from it. So
/// every directory from "/" on must belong to root or this user and must not be writable by others unless its sticky
/// bit is set. With a sticky bit, only the owner of the directory or of an entry can rename or remove that entry.
/// Symbolic links are not followed.
Result<Fd> open_safe_parent(const std::string& path) {
  Fd directory(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t slash = 0;;) {
    const std::string walked = path.substr(0, std::max<std::size_t>(slash, 1));
    struct stat info {};
    if (!directory || ::fstat(directory.get(), &info) != 0) {
      return fail(errno_error(walked));
    }
    const bool is_foreign = info.st_uid != 0 && info.st_uid != ::geteuid();
    const bool is_open = (info.st_mode & 022) != 0 && (info.st_mode & S_ISVTX) == 0;
    if (is_foreign || is_open) {
      return fail(ErrorCode::unsafe_directory, walked + ": other users can replace its entries");
    }
    const std::size_t next = path.find('/', slash + 1);
    if (next == std::string::npos) {
      return directory;
    }
    const std::string name = path.substr(slash + 1, next - slash - 1);
    directory.reset(::openat(directory.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    slash = next;
  }
}

/// Opens the absolute `path` as a directory that only this user can access. Creates it if it does not exist.
Result<Fd> open_private_directory(const std::string& path) {
  const auto parent = open_safe_parent(path);
  if (!parent) {
    return fail(parent.error());
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  if (::mkdirat(parent->get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errno_error(path));
  }
  Fd fd(::openat(parent->get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return fail(errno_error(path));
  }
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return fail(ErrorCode::unsafe_directory, path + ": belongs to another user");
  }
  if (::faccessat(fd.get(), ".", W_OK, AT_EACCESS) != 0) {
    return fail(errno_error(path));
  }
  return fd;
}

}  // namespace

Result<StateDirectory> StateDirectory::open() {
  const std::string uid = std::to_string(::geteuid());
  std::string failures;
  for (const std::string& path : {"/var/lib/dockbridge/state/" + uid, "/tmp/.dockbridge-" + uid,
                                  "/run/.dockbridge-" + uid, "/dev/shm/.dockbridge-" + uid}) {
    auto directory = open(path);
    if (directory) {
      return directory;
    }
    failures += (failures.empty() ? "" : "; ") + directory.error().message;
  }
  return fail(ErrorCode::no_state_directory, "No writable directory in the container: " + failures);
}

Result<StateDirectory> StateDirectory::open(const std::string& path) {
  auto fd = open_private_directory(path);
  if (!fd) {
    return fail(fd.error());
  }
  StateDirectory directory;
  directory.m_path = path;
  directory.m_fd = std::move(*fd);
  return directory;
}

void StateDirectory::prepare() {
  release_journal();
  // `create` retries after a failure, and reports it.
  static int count = 0;
  m_journal_name = fmt::format("{}{}_{}_{}", k_journal_prefix, ::getpid(), unix_milliseconds_now(), ++count);
  m_journal.reset(::openat(m_fd.get(), m_journal_name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  m_reserved_end = 0;
  m_journal_starts = 0;
  if (m_journal) {
    (void)reserve();
  }
}

Result<void> StateDirectory::reserve() {
  struct stat info {};
  if (::fstat(m_journal.get(), &info) != 0) {
    return fail(errno_error("Cannot write to the journal"));
  }
  // Lines of ended processes are counted twice. This is simple and reserves too much rather than too little.
  const off_t needed = info.st_size + (m_journal_starts + 1) * k_keeper_bytes;
  if (needed <= m_reserved_end) {
    return {};
  }
  const off_t end = (needed / k_reserve_step + 1) * k_reserve_step;
  // Appends use the reserved blocks: on ext4, xfs, tmpfs and overlayfs they need no new block. Any other error means
  // that this file system cannot reserve space. A keeper then retries lines that it cannot write.
  if (::fallocate(m_journal.get(), FALLOC_FL_KEEP_SIZE, 0, end) != 0 && (errno == ENOSPC || errno == EDQUOT)) {
    return fail(errno_error("Cannot write to the journal"));
  }
  m_reserved_end = end;
  return {};
}

void StateDirectory::release_journal() {
  if (m_journal) {
    ::unlinkat(m_fd.get(), m_journal_name.c_str(), 0);
    m_journal.reset();
  }
}

Result<Fd> StateDirectory::create(const std::string& process, const Meta& meta) {
  const auto exists = [] { return fail(ErrorCode::process_exists, "Process id exists"); };
  const auto refuse = [&](const Error& error) {
    return fail(ErrorCode::state_not_writable, fmt::format("Cannot store a process in {}: {}", m_path, error.message));
  };
  if (::faccessat(m_fd.get(), process.c_str(), F_OK, 0) == 0) {
    return exists();  // before a line is written to the journal
  }
  struct stat info {};
  if (!m_journal || (::fstat(m_journal.get(), &info) == 0 && info.st_size > k_journal_turn_bytes)) {
    prepare();
  }
  while (m_journal) {
    Fd journal(::fcntl(m_journal.get(), F_DUPFD_CLOEXEC, 0));
    if (!journal) {
      return refuse(errno_error("Cannot write to the journal"));
    }
    if (auto written = append(journal.get(), process, meta).and_then([&] { return reserve(); }); !written) {
      return refuse(written.error());
    }
    if (::linkat(m_fd.get(), m_journal_name.c_str(), m_fd.get(), process.c_str(), 0) == 0) {
      ++m_journal_starts;
      return journal;
    }
    if (errno != ENOENT) {
      return errno == EEXIST ? exists() : refuse(errno_error("Cannot write to the journal"));
    }
    prepare();  // another session removed the journal as a leftover
  }
  return refuse(errno_error("Cannot write to the journal"));
}

std::optional<std::string> StateDirectory::namesake(const std::string& process) const {
  if (::faccessat(m_fd.get(), process.c_str(), F_OK, 0) == 0) {
    return process;
  }
  const std::string ending = process.substr(process.rfind('_'));
  for (std::string& name : names()) {
    if (name.ends_with(ending) && wire::is_process_id(name)) {
      return std::move(name);
    }
  }
  const auto ids = read_regular_at(m_fd.get(), k_expired_name, k_max_expired_bytes);
  const std::size_t at = ids ? ids->find(ending + "\n") : std::string::npos;
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t line = ids->rfind('\n', at) + 1;  // 0 if there is none
  std::string expired = ids->substr(line, at + ending.size() - line);
  return wire::is_process_id(expired) ? std::optional(std::move(expired)) : std::nullopt;
}

Error no_such_process(const std::string& process) {
  return {ErrorCode::no_such_process, "Process not found: " + process};
}

Result<Record> StateDirectory::read(const std::string& process) const {
  if (::faccessat(m_fd.get(), process.c_str(), F_OK, 0) != 0 && errno == ENOENT) {
    return is_expired(process) ? fail(ErrorCode::process_expired, "Process expired: " + process)
                               : fail(no_such_process(process));
  }
  return read_regular_at(m_fd.get(), process, k_max_journal_bytes).and_then([&](const std::string& journal) {
    return find_record(journal, process);
  });
}

std::vector<std::string> StateDirectory::names() const {
  std::vector<std::string> names;
  const int copy = ::openat(m_fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(copy >= 0 ? ::fdopendir(copy) : nullptr, ::closedir);
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    names.emplace_back(item->d_name);
  }
  return names;
}

bool StateDirectory::is_foreign_journal(const std::string& name) const {
  return name.starts_with(k_journal_prefix) && name != m_journal_name;
}

void StateDirectory::visit(const RecordVisitor& visitor) const {
  std::map<ino_t, std::set<std::string>> journals;
  for (std::string& name : names()) {
    struct stat info {};
    if (wire::is_process_id(name) && ::fstatat(m_fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
      journals[info.st_ino].insert(std::move(name));
    }
  }
  for (auto& journal_names : journals) {
    std::set<std::string>& processes = journal_names.second;
    Result<std::string> journal = fail(ErrorCode::no_such_process, "");
    // Read by any of its names that still exists.
    for (auto name = processes.begin(); name != processes.end() && !journal; ++name) {
      journal = read_regular_at(m_fd.get(), *name, k_max_journal_bytes);
    }
    visit_records(journal.value_or(""), [&](const std::string& process, const Result<Record>& record) {
      if (processes.erase(process) > 0) {  // skips expired processes
        visitor(process, record);
      }
    });
    for (const std::string& process : processes) {
      visitor(process, journal ? fail(ErrorCode::record_damaged, "The journal does not contain the process")
                               : fail(journal.error()));
    }
  }
}

void StateDirectory::remove(const std::string& process) const {
  for (const std::string& name : {out_name(process), err_name(process), side_name(process), screen_name(process),
                                  script_name(process), process}) {
    ::unlinkat(m_fd.get(), name.c_str(), 0);
  }
}

void StateDirectory::note_expired(const std::vector<std::string>& processes) const {
  if (processes.empty()) {
    return;
  }
  std::string ids = read_regular_at(m_fd.get(), k_expired_name, k_max_expired_bytes).value_or("");
  for (const std::string& process : processes) {
    ids += process + "\n";
  }
  if (ids.size() > k_max_expired_bytes) {
    ids.erase(0, ids.find('\n', ids.size() - k_max_expired_bytes / 2) + 1);
  }
  (void)replace_file_at(m_fd.get(), k_expired_name, ids);  // on a full disk, these ids count as never used
}

bool StateDirectory::is_expired(const std::string& process) const {
  const auto ids = read_regular_at(m_fd.get(), k_expired_name, k_max_expired_bytes);
  return ids && ("\n" + *ids).find("\n" + process + "\n") != std::string::npos;
}

}  // namespace dockbridge::agent
