#include "agent/session/survivors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "agent/as_user_of.hpp"
#include "agent/process_tree.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_environment_bytes = 4 * 1024 * 1024;
/// Descriptors in use at a time. A process may have about a thousand.
constexpr std::size_t k_max_handles = 256;

/// A NUL, then the entries, each followed by a NUL.
std::string environment_of(pid_t pid) {
  const AsUserOf identity(pid);
  const auto entries = read_file_at(AT_FDCWD, fmt::format("/proc/{}/environ", pid), k_max_environment_bytes);
  return std::string(1, '\0') + entries.value_or("");
}

bool belongs_to(pid_t pid, const std::string& process) {
  const std::string entry = fmt::format("{}={}", k_process_variable, process);
  return environment_of(pid).find(std::string(1, '\0') + entry + '\0') != std::string::npos;
}

/// The system processes that have the variable, then their descendants, which may have cleared their environment. Each
/// follows the process by which it was found.
std::vector<pid_t> survivors_of(const std::string& process) {
  const auto all = all_processes();
  std::vector<pid_t> found;
  std::set<pid_t> known;
  const auto add = [&](const ProcessEntry& entry, bool belongs) {
    if (belongs && known.insert(entry.pid).second) {
      found.push_back(entry.pid);
    }
  };
  for (const ProcessEntry& entry : all) {
    add(entry, !entry.is_dead() && belongs_to(entry.pid, process));
  }
  for (std::size_t before = 0; before < found.size();) {
    before = found.size();
    for (const ProcessEntry& entry : all) {
      add(entry, !entry.is_dead() && known.contains(entry.parent));
    }
  }
  return found;
}

/// The process id in the environment of `pid`; empty if there is none.
std::string process_in_environment(pid_t pid) {
  const std::string text = environment_of(pid);
  const std::string mark = std::string(1, '\0') + k_process_variable + "=";
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) {
    return "";
  }
  const std::size_t begin = at + mark.size();
  std::string process = text.substr(begin, text.find('\0', begin) - begin);
  return wire::is_process_id(process) ? process : "";
}

}  // namespace

std::string process_of(pid_t pid, const std::vector<ProcessEntry>& all) {
  // The number of steps is bounded, because the list is not a snapshot of one moment.
  for (std::size_t step = 0; pid > 1 && step < all.size(); ++step) {
    if (std::string process = process_in_environment(pid); !process.empty()) {
      return process;
    }
    const auto entry = std::find_if(all.begin(), all.end(), [&](const ProcessEntry& it) { return it.pid == pid; });
    pid = entry == all.end() ? 0 : entry->parent;
  }
  return "";
}

std::size_t count_survivors(const std::string& process) {
  return survivors_of(process).size();
}

std::size_t signal_survivors(const std::string& process, int signal) {
  std::size_t signalled = 0;
  // From the back, so that a process is signalled before the one by which it was found is gone.
  auto left = survivors_of(process);
  while (!left.empty()) {
    std::map<pid_t, Fd> handles;
    for (; !left.empty() && handles.size() < k_max_handles; left.pop_back()) {
      handles.emplace(left.back(), static_cast<int>(::syscall(SYS_pidfd_open, left.back(), 0)));
    }
    // Checked again, now that the handles prevent the reuse of a pid.
    for (const pid_t pid : survivors_of(process)) {
      const auto handle = handles.find(pid);
      const bool is_wanted = handle != handles.end() && handle->second;
      signalled += is_wanted && ::syscall(SYS_pidfd_send_signal, handle->second.get(), signal, nullptr, 0) == 0 ? 1 : 0;
    }
  }
  return signalled;
}

}  // namespace dockbridge::agent
