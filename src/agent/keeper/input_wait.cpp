#include "agent/keeper/input_wait.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <sstream>
#include <vector>

#include "util/fd.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

using wire::WaitsForInput;

constexpr std::size_t k_most_descriptors = 1024;
constexpr std::size_t k_most_fdinfo_bytes = 256 * 1024;

/// The system call that a thread is blocked in.
struct Blocked {
  long number = -1;
  std::array<std::uint64_t, 3> arguments{};
};

/// Descriptors that a thread waits for; none if that cannot be told.
using Awaited = std::optional<std::vector<int>>;

std::string read_link(const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : "";
}

bool read_memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) {
  const Fd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  return memory && ::pread(memory.get(), to, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

Awaited in_poll(pid_t pid, const Blocked& call) {
  std::vector<pollfd> polled(std::min<std::uint64_t>(call.arguments[1], k_most_descriptors));
  if (!read_memory(pid, call.arguments[0], polled.data(), polled.size() * sizeof(pollfd))) {
    return std::nullopt;
  }
  std::vector<int> awaited;
  for (const pollfd& entry : polled) {
    if (entry.fd >= 0 && (entry.events & (POLLIN | POLLRDNORM)) != 0) {
      awaited.push_back(entry.fd);
    }
  }
  return awaited;
}

Awaited in_select(pid_t pid, const Blocked& call) {
  if (call.arguments[1] == 0) {
    return std::vector<int>{};
  }
  const int count = static_cast<int>(std::min<std::uint64_t>(call.arguments[0], FD_SETSIZE));
  fd_set readable;
  FD_ZERO(&readable);
  // The kernel, too, reads whole words only.
  const std::size_t words = (static_cast<std::size_t>(count) + 8 * sizeof(long) - 1) / (8 * sizeof(long));
  if (!read_memory(pid, call.arguments[1], &readable, words * sizeof(long))) {
    return std::nullopt;
  }
  std::vector<int> awaited;
  for (int fd = 0; fd < count; ++fd) {
    if (FD_ISSET(fd, &readable)) {
      awaited.push_back(fd);
    }
  }
  return awaited;
}

Awaited in_epoll(pid_t pid, const Blocked& call) {
  const auto info =
      read_file_at(AT_FDCWD, fmt::format("/proc/{}/fdinfo/{}", pid, call.arguments[0]), k_most_fdinfo_bytes);
  if (!info) {
    return std::nullopt;
  }
  std::vector<int> awaited;
  std::istringstream lines(*info);
  for (std::string line; std::getline(lines, line);) {
    int fd = 0;
    unsigned events = 0;
    if (std::sscanf(line.c_str(), "tfd: %d events: %x", &fd, &events) == 2 && (events & EPOLLIN) != 0) {
      awaited.push_back(fd);
    }
  }
  return awaited;
}

Awaited awaited_descriptors(pid_t pid, const Blocked& call) {
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_preadv2:
    case SYS_splice:
    case SYS_tee:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
      return std::vector<int>{static_cast<int>(call.arguments[0])};
    case SYS_sendfile:
      return std::vector<int>{static_cast<int>(call.arguments[1])};
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
      return in_poll(pid, call);
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
      return in_select(pid, call);
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return in_epoll(pid, call);
    case SYS_io_uring_enter:
    case SYS_restart_syscall:  // one of the above, taken up again after a stop
      return std::nullopt;
    default:
      return std::vector<int>{};
  }
}

/// What the threads of a process, or the processes of a tree, are at.
struct Sight {
  bool reads_input = false;
  bool does_more = false;  ///< works, or waits for connections, files or another terminal as well
  bool is_hidden = false;  ///< something could not be looked at
};

/// Who waits for one of these does something of its own accord.
bool is_other_work(const std::string& link) {
  return link.starts_with("socket:") || link.ends_with("/ptmx") || link.find("inotify") != std::string::npos;
}

void look_at_call(const ProcessEntry& process, const Blocked& call, const InputSource& source, Sight& sight) {
  const Awaited awaited = awaited_descriptors(process.pid, call);
  if (!awaited) {
    sight.is_hidden = true;
    return;
  }
  for (const int fd : *awaited) {
    const std::string link = read_link(fmt::format("/proc/{}/fd/{}", process.pid, fd));
    const bool own_terminal = source.terminal != 0 && link == "/dev/tty" && process.terminal == source.terminal;
    sight.reads_input = sight.reads_input || link == source.link || own_terminal;
    sight.does_more = sight.does_more || is_other_work(link);
  }
}

/// "NUMBER 0xARGUMENT 0xARGUMENT …". By hand, as in process_tree: without stdio.
bool read_call(std::string_view text, Blocked& call) {
  const char* end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, call.number);
  for (std::uint64_t& argument : call.arguments) {
    constexpr std::string_view k_before = " 0x";
    if (read.ec != std::errc() || !std::string_view(read.ptr, end).starts_with(k_before)) {
      return false;
    }
    read = std::from_chars(read.ptr + k_before.size(), end, argument, 16);
  }
  return read.ec == std::errc();
}

void look_at_thread(const ProcessEntry& process, pid_t thread, const InputSource& source, Sight& sight) {
  const Fd file(::open(fmt::format("/proc/{}/task/{}/syscall", process.pid, thread).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size() - 1) : -1;
  if (got < 0) {
    sight.is_hidden = sight.is_hidden || (errno != ENOENT && errno != ESRCH);
    return;
  }
  Blocked call;
  if (read_call({text.data(), static_cast<std::size_t>(got)}, call)) {
    look_at_call(process, call, source, sight);
  } else {
    sight.does_more = true;  // "running"
  }
}

/// Whether its system calls have the numbers that this program knows. Not if that cannot be seen.
bool has_own_call_numbers(pid_t pid) {
  const Fd program(::open(fmt::format("/proc/{}/exe", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<unsigned char, EI_NIDENT> identity{};
  return program && ::read(program.get(), identity.data(), identity.size()) == EI_NIDENT &&
         identity[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32);
}

/// A thread that reads the input beside others that work does not hold them up.
Sight look_at_process(const ProcessEntry& process, const InputSource& source) {
  Sight sight;
  if (!has_own_call_numbers(process.pid)) {
    // One that has just ended has no program any more.
    sight.is_hidden = ::access(fmt::format("/proc/{}/task", process.pid).c_str(), F_OK) == 0;
    return sight;
  }
  for (const pid_t thread : threads_of(process.pid)) {
    look_at_thread(process, thread, source, sight);
  }
  return sight;
}

}  // namespace

InputSource input_source(int fd) {
  struct stat info {};
  const bool is_terminal = ::fstat(fd, &info) == 0 && S_ISCHR(info.st_mode);
  return {read_link(fmt::format("/proc/self/fd/{}", fd)), is_terminal ? terminal_number(info.st_rdev) : 0};
}

WaitsForInput waits_for_input(const std::vector<ProcessEntry>& processes, const InputSource& source) {
  static const bool kernel_tells = ::access("/proc/self/syscall", F_OK) == 0;
  bool certain = false;
  bool doubtful = !kernel_tells;
  bool works = false;
  for (const ProcessEntry& process : processes) {
    if (process.is_stopped()) {
      continue;
    }
    const Sight sight = look_at_process(process, source);
    certain = certain || (sight.reads_input && !sight.does_more);
    doubtful = doubtful || sight.is_hidden || sight.reads_input;
    works = works || process.state == 'R' || process.state == 'D';
  }
  if (certain && !works) {
    return WaitsForInput::yes;
  }
  return certain || doubtful ? WaitsForInput::unknown : WaitsForInput::no;
}

}  // namespace dockbridge::agent
