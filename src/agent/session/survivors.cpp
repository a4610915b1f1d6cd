#include "agent/session/survivors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <set>

#include "agent/keeper/process_tree.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_most_environment = 4 * 1024 * 1024;

bool belongs_to(pid_t pid, const std::string& process) {
  const auto environment = read_file_at(AT_FDCWD, fmt::format("/proc/{}/environ", pid), k_most_environment);
  const std::string entry = fmt::format("{}={}", k_process_variable, process);
  // Each entry ends with a NUL, and all but the first follow one.
  return environment &&
         (std::string(1, '\0') + *environment).find(std::string(1, '\0') + entry + '\0') != std::string::npos;
}

/// Those that have the variable, and everything below them, which may have thrown its environment away.
std::set<pid_t> survivors_of(const std::string& process) {
  const auto all = all_processes();
  std::set<pid_t> found;
  for (const ProcessEntry& entry : all) {
    if (!entry.is_dead() && belongs_to(entry.pid, process)) {
      found.insert(entry.pid);
    }
  }
  for (bool more = true; more;) {
    more = false;
    for (const ProcessEntry& entry : all) {
      more = (!entry.is_dead() && found.contains(entry.parent) && found.insert(entry.pid).second) || more;
    }
  }
  return found;
}

}  // namespace

std::size_t count_survivors(const std::string& process) {
  return survivors_of(process).size();
}

std::size_t signal_survivors(const std::string& process, int signal) {
  std::map<pid_t, Fd> handles;
  for (const pid_t pid : survivors_of(process)) {
    handles.emplace(pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  }
  // Looked at once more, now that no pid can become another's.
  const auto still = survivors_of(process);
  for (const auto& [pid, handle] : handles) {
    if (handle && still.contains(pid)) {
      ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
    }
  }
  return still.size();
}

}  // namespace dockbridge::agent
