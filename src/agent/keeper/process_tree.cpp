#include "agent/keeper/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "util/fd.hpp"

namespace dockbridge::agent {

namespace {

struct Entry {
  pid_t pid;
  pid_t parent;
  bool zombie;
};

/// False if the process is gone. The name in parentheses may hold anything, so the fields count from its last ')'.
bool read_entry(pid_t pid, Entry& entry) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const Fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size() - 1) : -1;
  if (got <= 0) {
    return false;
  }
  const char* after_name = std::strrchr(text.data(), ')');
  char state = 0;
  int parent = 0;
  if (after_name == nullptr || std::sscanf(after_name + 1, " %c %d", &state, &parent) != 2) {
    return false;
  }
  entry = {pid, parent, state == 'Z' || state == 'X'};
  return true;
}

std::vector<Entry> all_processes() {
  std::vector<Entry> entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* item = proc ? ::readdir(proc.get()) : nullptr) {
    const std::string_view name = item->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    Entry entry{};
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && read_entry(pid, entry)) {
      entries.push_back(entry);
    }
  }
  return entries;
}

bool descends_from(pid_t pid, pid_t ancestor) {
  Entry entry{};
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

std::size_t signal_descendants(int signal) {
  const pid_t self = ::getpid();
  const auto entries = all_processes();
  std::vector<pid_t> family{self};
  std::size_t live = 0;
  // Breadth first over the parent links; `family` grows while it is walked.
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const Entry& entry : entries) {
      if (entry.parent != family[i] || entry.pid == self) {
        continue;
      }
      family.push_back(entry.pid);
      if (!entry.zombie) {
        ++live;
        signal_one(entry.pid, self, signal);
      }
    }
  }
  return live;
}

}  // namespace dockbridge::agent
