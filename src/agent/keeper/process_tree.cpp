#include "agent/keeper/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "util/fd.hpp"

namespace dockbridge::agent {

namespace {

/// False if the process is gone. The name in parentheses may hold anything, so the fields count from its last ')'.
bool read_entry(pid_t pid, ProcessEntry& entry) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const Fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size() - 1) : -1;
  if (got <= 0) {
    return false;
  }
  const char* after_name = std::strrchr(text.data(), ')');
  int terminal = 0;
  if (after_name == nullptr ||
      std::sscanf(after_name + 1, " %c %d %*d %*d %d", &entry.state, &entry.parent, &terminal) != 3) {
    return false;
  }
  entry.pid = pid;
  entry.terminal = static_cast<unsigned>(terminal);
  return true;
}

std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* item = proc ? ::readdir(proc.get()) : nullptr) {
    const std::string_view name = item->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    ProcessEntry entry;
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && read_entry(pid, entry)) {
      entries.push_back(entry);
    }
  }
  return entries;
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

unsigned terminal_number(dev_t device) {
  const unsigned number = minor(device);
  return (number & 0xFFU) | (major(device) << 8U) | ((number & ~0xFFU) << 12U);
}

std::vector<ProcessEntry> descendants() {
  const auto entries = all_processes();
  std::vector<ProcessEntry> family{ProcessEntry{::getpid(), 0, 'R', 0}};
  // Breadth first over the parent links; `family` grows while it is walked. The dead may still have children.
  for (std::size_t i = 0; i < family.size(); ++i) {
    const pid_t parent = family[i].pid;
    for (const ProcessEntry& entry : entries) {
      if (entry.parent == parent) {
        family.push_back(entry);
      }
    }
  }
  family.erase(family.begin());
  std::erase_if(family, [](const ProcessEntry& entry) { return entry.is_dead(); });
  return family;
}

void signal_descendants(int signal) {
  for (const ProcessEntry& entry : descendants()) {
    signal_one(entry.pid, ::getpid(), signal);
  }
}

}  // namespace dockbridge::agent
