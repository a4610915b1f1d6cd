#include "agent/session/survivors.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <functional>
#include <memory>
#include <string_view>

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

std::size_t for_each_survivor(const std::string& process, const std::function<void(pid_t)>& visit) {
  std::size_t count = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* item = proc ? ::readdir(proc.get()) : nullptr) {
    const std::string_view name = item->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && belongs_to(pid, process)) {
      visit(pid);
      ++count;
    }
  }
  return count;
}

}  // namespace

std::size_t count_survivors(const std::string& process) {
  return for_each_survivor(process, [](pid_t) {});
}

std::size_t signal_survivors(const std::string& process, int signal) {
  return for_each_survivor(process, [&](pid_t pid) {
    const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    // Looked at once more, now that the pid cannot become another's.
    if (handle && belongs_to(pid, process)) {
      ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
    }
  });
}

}  // namespace dockbridge::agent
