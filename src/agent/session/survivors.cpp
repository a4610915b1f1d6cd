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
/// Descriptors at a time, of the thousand or so that a process may have.
constexpr std::size_t k_most_handles = 256;

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
  std::size_t signalled = 0;
  const auto found = survivors_of(process);
  for (auto next = found.begin(); next != found.end();) {
    std::map<pid_t, Fd> handles;
    for (; next != found.end() && handles.size() < k_most_handles; ++next) {
      handles.emplace(*next, static_cast<int>(::syscall(SYS_pidfd_open, *next, 0)));
    }
    // Looked at once more, now that no pid can become another's.
    const auto still = survivors_of(process);
    for (const auto& [pid, handle] : handles) {
      const bool is_meant = handle && still.contains(pid);
      signalled += is_meant && ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0) == 0 ? 1 : 0;
    }
  }
  return signalled;
}

}  // namespace dockbridge::agent
