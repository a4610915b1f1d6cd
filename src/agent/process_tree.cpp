#include "agent/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>

#include "util/fd.hpp"

namespace dockbridge::agent {

namespace {

constexpr int k_max_passes = 5;

/// False if the process has ended. The name in parentheses may contain anything, so fields are counted from the last
/// ')'.
bool read_entry(pid_t pid, ProcessEntry& entry) {
  const Fd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size() - 1) : -1;
  if (got <= 0) {
    return false;
  }
  // Parsed by hand: stdio would cost each keeper pages that it needs for nothing else.
  const char* at = std::strrchr(text.data(), ')');
  if (at == nullptr || text.data() + got - at < 3) {
    return false;
  }
  at += 2;
  entry.state = *at++;
  std::array<long, 14> fields{};  // from the parent (field 4 in proc(5)) to the ticks of dead children (17)
  const char* end = text.data() + got;
  for (long& field : fields) {
    at = std::find_if(at, end, [](char c) { return c != ' '; });
    const auto read = std::from_chars(at, end, field);
    if (read.ec != std::errc()) {
      return false;
    }
    at = read.ptr;
  }
  entry.parent = static_cast<pid_t>(fields[0]);
  entry.group = static_cast<pid_t>(fields[1]);
  const long terminal = fields[3];
  entry.foreground_group = static_cast<pid_t>(fields[4]);
  entry.cpu_ticks = static_cast<unsigned long>(std::accumulate(fields.end() - 4, fields.end(), 0L));
  entry.pid = pid;
  entry.terminal = static_cast<unsigned>(terminal);
  return true;
}

/// All numeric names in a directory.
std::vector<pid_t> numbers_in(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  while (const dirent* item = directory ? ::readdir(directory.get()) : nullptr) {
    const std::string_view name = item->d_name;
    pid_t number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
    if (read.ec == std::errc() && read.ptr == name.data() + name.size()) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

/// Whether the kernel lists the children of each thread. Otherwise every process has to be examined.
bool has_children_lists() {
  static const bool has = ::access("/proc/thread-self/children", R_OK) == 0;
  return has;
}

void add_children(const std::string& list, std::vector<ProcessEntry>& children) {
  const Fd file(::open(list.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; file && (got = ::read(file.get(), piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    pid_t pid = 0;
    at = std::from_chars(at, end, pid).ptr + 1;
    ProcessEntry entry;
    if (pid > 0 && read_entry(pid, entry)) {
      children.push_back(entry);
    }
  }
}

std::vector<ProcessEntry> children_of(pid_t pid) {
  std::vector<ProcessEntry> children;
  for (const pid_t thread : threads_of(pid)) {
    add_children(fmt::format("/proc/{}/task/{}/children", pid, thread), children);
  }
  return children;
}

bool descends_from(pid_t pid, pid_t ancestor) {
  ProcessEntry entry;
  for (int steps = 0; steps < 10'000 && pid > 1 && read_entry(pid, entry); ++steps) {
    if (entry.parent == ancestor) {
      return true;
    }
    pid = entry.parent;
  }
  return false;
}

void signal_one(pid_t pid, pid_t ancestor, int signal) {
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (handle && descends_from(pid, ancestor)) {
    ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
  } else if (!handle && errno == ENOSYS && descends_from(pid, ancestor)) {
    ::kill(pid, signal);
  }
}

}  // namespace

std::vector<pid_t> threads_of(pid_t process) {
  return numbers_in(fmt::format("/proc/{}/task", process));
}

std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> entries;
  for (const pid_t pid : numbers_in("/proc")) {
    ProcessEntry entry;
    if (read_entry(pid, entry)) {
      entries.push_back(entry);
    }
  }
  return entries;
}

unsigned terminal_number(dev_t device) {
  const unsigned number = minor(device);
  return (number & 0xFFU) | (major(device) << 8U) | ((number & ~0xFFU) << 12U);
}

std::vector<ProcessEntry> descendants() {
  const bool has_lists = has_children_lists();
  const auto all = has_lists ? std::vector<ProcessEntry>() : all_processes();
  std::vector<ProcessEntry> family{ProcessEntry{::getpid()}};
  // Breadth first; `family` grows during the walk. A zombie may still have children.
  for (std::size_t i = 0; i < family.size(); ++i) {
    const pid_t parent = family[i].pid;
    for (const ProcessEntry& child : has_lists ? children_of(parent) : all) {
      if (child.parent == parent) {
        family.push_back(child);
      }
    }
  }
  family.erase(family.begin());
  std::erase_if(family, [](const ProcessEntry& entry) { return entry.is_dead(); });
  return family;
}

void signal_descendants(int signal) {
  // Repeated while there are new processes: they may fork in the meantime, and a list that is read while a process
  // ends may lack another one.
  std::set<pid_t> reached;
  bool found_more = true;
  for (int pass = 0; pass < k_max_passes && found_more; ++pass) {
    found_more = false;
    for (const ProcessEntry& entry : descendants()) {
      if (reached.insert(entry.pid).second) {
        signal_one(entry.pid, ::getpid(), signal);
        found_more = true;
      }
    }
  }
}

}  // namespace dockbridge::agent
