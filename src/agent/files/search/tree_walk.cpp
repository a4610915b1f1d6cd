#include "agent/files/search/tree_walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "agent/files/search/ignore_rules.hpp"
#include "agent/files/search/open_beneath.hpp"
#include "util/fd.hpp"
#include "util/mutex.hpp"

namespace dockbridge::agent {

namespace {

constexpr unsigned k_max_threads = 12;
constexpr std::size_t k_entries_buffer_bytes = 32 * 1024;
constexpr std::size_t k_max_entry_bytes = 512;
/// Above this number, a directory is closed as soon as it is read, and its children are opened by their whole path.
constexpr std::size_t k_max_open_directories = 200;
/// Directories that are known but not read yet. Only a tree that is both very deep and very wide has more.
constexpr std::size_t k_max_waiting = 100'000;
constexpr std::size_t k_max_reported_paths = 20;
constexpr std::size_t k_max_reported_path_bytes = 4096;
constexpr int k_directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

/// A directory of the tree. Its children keep it alive until they are read. The walk's lock guards all members but
/// `name` and `parent`, except in the thread that reads the directory.
struct Directory {
  using Shared = std::shared_ptr<Directory>;

  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  /// Releases the ancestors in a loop: in a very deep tree, a recursion would overflow the stack.
  ~Directory() {
    while (parent && parent.use_count() == 1) {
      parent = Shared(parent->parent);
    }
  }

  Shared parent;
  std::string name;
  std::uint32_t depth = 0;     // 0 for the start
  std::uint32_t unopened = 0;  // children that will be opened through `fd`
  std::uint32_t fd_users = 0;  // threads that use `fd` now
  bool started = false;        // at least partly read
  Fd fd;
  IgnoreRules::Shared rules;  // those of the parent until it is read
};

class Walk {
 public:
  Walk(int start_fd, const WalkOptions& options, const std::function<void(const WalkEntry&)>& visit)
      : m_start_fd(start_fd), m_options(options), m_visit(visit) {}

  WalkTotals run(unsigned threads);

 private:
  struct Worker;
  void work(unsigned thread);
  Directory::Shared take();
  bool open(Directory& directory, Worker& worker);
  bool read_entries(Directory& directory, Worker& worker);
  void enter_rules(Directory& directory, Worker& worker, bool is_complete);
  void add_entries(const Directory::Shared& directory, Worker& worker, bool more);
  void visit_files(const Directory& directory, Worker& worker);
  void finish(Directory& directory);
  void close_if_unused(Directory& directory) REQUIRES(m_mutex);
  [[nodiscard]] std::string_view path_of_directory(const Worker& worker) const;
  void add_unreadable(std::string_view path, std::string_view reason);

  int m_start_fd;
  const WalkOptions& m_options;
  const std::function<void(const WalkEntry&)>& m_visit;
  IgnoreBudget m_budget;
  std::string m_lead;  // prefix of all paths that rules are matched against

  Mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<Directory::Shared> m_waiting GUARDED_BY(m_mutex);  // the last is read first, so that few wait
  std::size_t m_unfinished GUARDED_BY(m_mutex) = 0;              // waiting or being read
  std::size_t m_open GUARDED_BY(m_mutex) = 0;
  WalkTotals m_totals GUARDED_BY(m_mutex);
};

/// State of one thread.
struct Walk::Worker {
  unsigned thread;
  WalkTotals totals{};
  std::vector<char> entries = std::vector<char>(k_entries_buffer_bytes);
  std::size_t entries_bytes = 0;
  std::string path{};  // lead, directory, name
  std::size_t directory_bytes = 0;
  std::vector<const dirent64*> files{};
  std::vector<Directory::Shared> children{};

  void go_to(const Directory& directory, const std::string& lead) {
    path = lead;
    std::size_t length = lead.size();
    for (const Directory* level = &directory; level->parent; level = level->parent.get()) {
      length += level->name.size() + 1;
    }
    directory_bytes = length;
    path.resize(length);
    for (const Directory* level = &directory; level->parent; level = level->parent.get()) {
      path[--length] = '/';
      length -= level->name.size();
      path.replace(length, level->name.size(), level->name);
    }
  }

  /// The path of a name in the current directory, with the lead.
  std::string_view path_of(const char* name) {
    path.resize(directory_bytes);
    path += name;
    return path;
  }
};

WalkTotals Walk::run(unsigned threads) {
  auto start = std::make_shared<Directory>();
  if (m_options.honour_ignore) {
    start->rules = IgnoreRules::above_start(m_start_fd, m_options.top_fd, m_lead, m_budget);
  }
  {
    const MutexLock lock(m_mutex);
    m_waiting.push_back(std::move(start));
    m_unfinished = 1;
  }
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread) {
    others.emplace_back([this, thread] { work(thread); });
  }
  work(0);
  for (std::thread& other : others) {
    other.join();
  }
  const MutexLock lock(m_mutex);
  m_totals.ignore_files_left_out = m_budget.files_left_out;
  return std::move(m_totals);
}

void Walk::work(unsigned thread) {
  Worker worker{thread};
  while (const Directory::Shared directory = take()) {
    worker.go_to(*directory, m_lead);
    if (!directory->started && !open(*directory, worker)) {
      finish(*directory);
      continue;
    }
    const bool more = read_entries(*directory, worker);
    if (!directory->started) {
      ++worker.totals.directories;
      if (m_options.honour_ignore) {
        enter_rules(*directory, worker, !more);
      }
    }
    add_entries(directory, worker, more);
    visit_files(*directory, worker);
    finish(*directory);
  }
  const MutexLock lock(m_mutex);
  m_totals.directories += worker.totals.directories;
  m_totals.hidden += worker.totals.hidden;
  m_totals.ignored += worker.totals.ignored;
  m_totals.excluded += worker.totals.excluded;
}

Directory::Shared Walk::take() {
  MutexLock lock(m_mutex);
  m_changed.wait(lock, [this]() REQUIRES(m_mutex) { return !m_waiting.empty() || m_unfinished == 0; });
  if (m_waiting.empty()) {
    return nullptr;
  }
  Directory::Shared directory = std::move(m_waiting.back());
  m_waiting.pop_back();
  return directory;
}

bool Walk::open(Directory& directory, Worker& worker) {
  Directory* const parent = directory.parent.get();
  Fd fd;
  if (parent == nullptr) {
    fd.reset(::openat(m_start_fd, ".", k_directory_flags));
  } else {
    int parent_fd = -1;
    {
      const MutexLock lock(m_mutex);
      parent_fd = parent->fd.get();
      ++parent->fd_users;
    }
    if (parent_fd >= 0) {
      fd.reset(::openat(parent_fd, directory.name.c_str(), k_directory_flags));
    } else {
      fd = open_beneath(m_start_fd, path_of_directory(worker), k_directory_flags);
    }
  }
  const int error = errno;
  const bool opened = static_cast<bool>(fd);
  {
    const MutexLock lock(m_mutex);
    if (parent != nullptr) {
      --parent->fd_users;
      --parent->unopened;
      close_if_unused(*parent);
    }
    if (opened) {
      directory.fd = std::move(fd);
      directory.fd_users = 1;
      ++m_open;
    }
  }
  // A name that vanished, or is not a directory any more, was changed during the walk. That is not an error.
  if (!opened && (parent == nullptr || (error != ENOENT && error != ENOTDIR && error != ELOOP))) {
    add_unreadable(path_of_directory(worker), std::strerror(error));
  }
  return opened;
}

/// Fills the buffer; true if there may be more.
bool Walk::read_entries(Directory& directory, Worker& worker) {
  worker.entries_bytes = 0;
  while (worker.entries.size() - worker.entries_bytes >= k_max_entry_bytes) {
    const ssize_t got = ::getdents64(directory.fd.get(), worker.entries.data() + worker.entries_bytes,
                                     worker.entries.size() - worker.entries_bytes);
    if (got < 0 && errno != ENOENT) {
      add_unreadable(path_of_directory(worker), std::strerror(errno));
    }
    if (got <= 0) {
      return false;
    }
    worker.entries_bytes += static_cast<std::size_t>(got);
  }
  return true;
}

void Walk::enter_rules(Directory& directory, Worker& worker, bool is_complete) {
  IgnoreRules::Sources sources;
  if (is_complete) {
    sources = {false, false, false};
    for (std::size_t at = 0; at < worker.entries_bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(worker.entries.data() + at);
      const std::string_view name = entry->d_name;
      sources.ignore |= name == ".ignore";
      sources.git_ignore |= name == ".gitignore";
      sources.git |= name == ".git";
      at += entry->d_reclen;
    }
  }
  if (sources.ignore || sources.git_ignore || sources.git) {
    directory.rules =
        IgnoreRules::enter(std::move(directory.rules), directory.fd.get(), worker.directory_bytes, sources, m_budget);
  }
}

/// Applies the options to the entries that were read. Hands the directories to all threads, and keeps the rest for
/// `visit_files`.
void Walk::add_entries(const Directory::Shared& shared, Worker& worker, bool more) {
  Directory& directory = *shared;
  worker.files.clear();
  worker.children.clear();
  for (std::size_t at = 0; at < worker.entries_bytes;) {
    auto* entry = reinterpret_cast<dirent64*>(worker.entries.data() + at);
    at += entry->d_reclen;
    const char* name = entry->d_name;
    if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'))) {
      continue;
    }
    if (entry->d_type == DT_UNKNOWN) {
      struct stat info {};
      if (::fstatat(directory.fd.get(), name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        entry->d_type = IFTODT(info.st_mode);
      }
    }
    const bool is_directory = entry->d_type == DT_DIR;
    const std::string_view path = worker.path_of(name);
    if (name[0] == '.' && (!m_options.hidden || (m_options.honour_ignore && std::strcmp(name, ".git") == 0))) {
      ++worker.totals.hidden;
    } else if (directory.rules && directory.rules->ignored(path, is_directory)) {
      ++worker.totals.ignored;
    } else if (any_matches(m_options.exclude, path.substr(m_lead.size()))) {
      ++worker.totals.excluded;
    } else {
      worker.files.push_back(entry);
      if (is_directory && (m_options.max_depth == 0 || directory.depth + 1 < m_options.max_depth)) {
        auto child = std::make_shared<Directory>();
        child->parent = shared;
        child->name = name;
        child->depth = directory.depth + 1;
        child->rules = directory.rules;
        worker.children.push_back(std::move(child));
      }
    }
  }
  const MutexLock lock(m_mutex);
  directory.started = true;
  if (m_waiting.size() + worker.children.size() > k_max_waiting) {
    m_totals.unreadable += worker.children.size();
    worker.children.clear();
  }
  if (more) {
    m_waiting.push_back(shared);
    ++directory.fd_users;
  }
  std::move(worker.children.begin(), worker.children.end(), std::back_inserter(m_waiting));
  directory.unopened += static_cast<std::uint32_t>(worker.children.size());
  const std::size_t added = worker.children.size() + (more ? 1 : 0);
  m_unfinished += added;
  if (added > 1) {
    m_changed.notify_all();
  } else {
    m_changed.notify_one();
  }
}

void Walk::visit_files(const Directory& directory, Worker& worker) {
  for (const dirent64* entry : worker.files) {
    const std::string_view path = worker.path_of(entry->d_name).substr(m_lead.size());
    if (entry->d_type == DT_DIR || m_options.include.empty() || any_matches(m_options.include, path)) {
      m_visit({directory.fd.get(), entry->d_name, path, file_type_of_entry(entry->d_type), worker.thread});
    }
  }
}

/// A thread is done with this directory, or with a part of it.
void Walk::finish(Directory& directory) {
  const MutexLock lock(m_mutex);
  if (directory.fd) {
    --directory.fd_users;
    close_if_unused(directory);
  }
  if (--m_unfinished == 0) {
    m_changed.notify_all();
  }
}

void Walk::close_if_unused(Directory& directory) {
  if (directory.fd && directory.fd_users == 0 && (directory.unopened == 0 || m_open > k_max_open_directories)) {
    directory.fd.reset();
    --m_open;
  }
}

std::string_view Walk::path_of_directory(const Worker& worker) const {
  const std::size_t length = worker.directory_bytes - m_lead.size();
  return length == 0 ? "." : std::string_view(worker.path).substr(m_lead.size(), length - 1);
}

void Walk::add_unreadable(std::string_view path, std::string_view reason) {
  const MutexLock lock(m_mutex);
  m_totals.add_unreadable(path.substr(0, k_max_reported_path_bytes), reason);
}

}  // namespace

void WalkTotals::add_unreadable(std::string_view path, std::string_view reason) {
  ++unreadable;
  if (unreadable_paths.size() < k_max_reported_paths) {
    unreadable_paths.push_back(std::string(path) + ": " + std::string(reason));
  }
}

void WalkTotals::add_unreadable(const WalkTotals& other) {
  unreadable += other.unreadable;
  const std::size_t count = std::min(other.unreadable_paths.size(), k_max_reported_paths - unreadable_paths.size());
  unreadable_paths.insert(unreadable_paths.end(), other.unreadable_paths.begin(),
                          other.unreadable_paths.begin() + static_cast<std::ptrdiff_t>(count));
}

unsigned walk_threads() {
  return std::clamp(std::thread::hardware_concurrency(), 1U, k_max_threads);
}

WalkTotals walk_tree(int start_fd, const WalkOptions& options, unsigned threads,
                     const std::function<void(const WalkEntry&)>& visit) {
  return Walk(start_fd, options, visit).run(threads);
}

}  // namespace dockbridge::agent
