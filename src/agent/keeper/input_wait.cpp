#include "agent/keeper/input_wait.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "agent/as_user_of.hpp"
#include "agent/keeper/own_channel.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

using wire::WaitsForInput;

constexpr std::size_t k_max_polled = 1024;
constexpr std::size_t k_most_fdinfo_bytes = 256 * 1024;

/// The system call that a thread is blocked in.
struct Blocked {
  long number = -1;
  std::array<std::uint64_t, 5> arguments{};
};

/// What a thread waits for.
struct Awaited {
  std::vector<int> descriptors{};
  std::optional<milliseconds> timeout{};
  bool in_event_loop = false;  ///< a timeout is then that of the next timer
  bool is_sleep = false;       ///< for time to pass, and nothing else
  bool is_hidden = false;      ///< that cannot be told
};

constexpr Awaited hidden() {
  return {.is_hidden = true};
}

/// A timer that is further away does not run.
constexpr std::int64_t k_longest_timeout_seconds = 365L * 24 * 3600;

milliseconds to_milliseconds(std::int64_t seconds, std::int64_t nanoseconds) {
  return milliseconds(std::clamp<std::int64_t>(seconds, 0, k_longest_timeout_seconds) * 1000 +
                      std::clamp<std::int64_t>(nanoseconds, 0, 999'999'999) / 1'000'000);
}

/// An argument in milliseconds, where a negative number means without limit.
std::optional<milliseconds> timeout_in(std::uint64_t argument) {
  const auto count = static_cast<std::int32_t>(argument);
  return count < 0 ? std::nullopt : std::optional(milliseconds(count));
}

std::string read_link(const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : "";
}

bool read_memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) {
  const Fd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  return memory && ::pread(memory.get(), to, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

/// A pointer to a timespec, or to a timeval; null means without limit.
std::optional<milliseconds> timeout_at(pid_t pid, std::uint64_t address, std::int64_t nanoseconds_per_unit = 1) {
  std::array<std::int64_t, 2> time{};
  if (address == 0 || !read_memory(pid, address, time.data(), sizeof time)) {
    return std::nullopt;
  }
  return to_milliseconds(time[0], std::clamp<std::int64_t>(time[1], 0, 999'999'999) * nanoseconds_per_unit);
}

Awaited in_poll(pid_t pid, const Blocked& call) {
  std::vector<pollfd> polled(std::min<std::uint64_t>(call.arguments[1], k_max_polled));
  if (!read_memory(pid, call.arguments[0], polled.data(), polled.size() * sizeof(pollfd))) {
    return hidden();
  }
  Awaited awaited;
  for (const pollfd& entry : polled) {
    if (entry.fd >= 0 && (entry.events & (POLLIN | POLLRDNORM)) != 0) {
      awaited.descriptors.push_back(entry.fd);
    }
  }
  return awaited;
}

Awaited in_select(pid_t pid, const Blocked& call) {
  Awaited awaited;
  if (call.arguments[1] == 0) {
    return awaited;
  }
  const int count = static_cast<int>(std::min<std::uint64_t>(call.arguments[0], FD_SETSIZE));
  fd_set readable;
  FD_ZERO(&readable);
  // The kernel, too, reads whole words only.
  const std::size_t words = (static_cast<std::size_t>(count) + 8 * sizeof(long) - 1) / (8 * sizeof(long));
  if (!read_memory(pid, call.arguments[1], &readable, words * sizeof(long))) {
    return hidden();
  }
  for (int fd = 0; fd < count; ++fd) {
    if (FD_ISSET(fd, &readable)) {
      awaited.descriptors.push_back(fd);
    }
  }
  return awaited;
}

Awaited in_epoll(pid_t pid, const Blocked& call) {
  const auto info =
      read_file_at(AT_FDCWD, fmt::format("/proc/{}/fdinfo/{}", pid, call.arguments[0]), k_most_fdinfo_bytes);
  if (!info) {
    return hidden();
  }
  Awaited awaited{.in_event_loop = true};
  std::istringstream lines(*info);
  for (std::string line; std::getline(lines, line);) {
    int fd = 0;
    unsigned events = 0;
    if (std::sscanf(line.c_str(), "tfd: %d events: %x", &fd, &events) == 2 && (events & EPOLLIN) != 0) {
      awaited.descriptors.push_back(fd);
    }
  }
  return awaited;
}

/// V8 schedules a garbage collection 8.1 s after each large one. That timer is not work of the program. A timer of
/// this length that the program set itself is mistaken for it, but is rare. While V8's timer runs, it hides a longer
/// timer of the program.
bool is_own_timer(milliseconds timeout) {
  constexpr milliseconds k_v8_delay{8000};
  constexpr milliseconds k_v8_slack{100};
  return timeout <= k_v8_delay || timeout > k_v8_delay + k_v8_slack;
}

Awaited with_timeout(Awaited awaited, std::optional<milliseconds> timeout) {
  awaited.timeout = timeout;
  return awaited;
}

Awaited awaited_by(pid_t pid, const Blocked& call) {
  const auto& arguments = call.arguments;
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
      return {.descriptors = {static_cast<int>(arguments[0])}};
    case SYS_sendfile:
      return {.descriptors = {static_cast<int>(arguments[1])}};
#ifdef SYS_poll
    case SYS_poll:
      return with_timeout(in_poll(pid, call), timeout_in(arguments[2]));
#endif
    case SYS_ppoll:
      return with_timeout(in_poll(pid, call), timeout_at(pid, arguments[2]));
#ifdef SYS_select
    case SYS_select:
      return with_timeout(in_select(pid, call), timeout_at(pid, arguments[4], 1000));
#endif
    case SYS_pselect6:
      return with_timeout(in_select(pid, call), timeout_at(pid, arguments[4]));
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
      return with_timeout(in_epoll(pid, call), timeout_in(arguments[3]));
    case SYS_epoll_pwait2:
      return with_timeout(in_epoll(pid, call), timeout_at(pid, arguments[3]));
#ifdef SYS_nanosleep
    case SYS_nanosleep:
#endif
    case SYS_clock_nanosleep:
      return {.is_sleep = true};
    case SYS_io_uring_enter:
    case SYS_restart_syscall:  // one of the above, taken up again after a stop
      return hidden();
    default:
      return {};
  }
}

/// What the threads of a process are at.
struct Sight {
  bool reads_input = false;
  bool does_more = false;  ///< works, sleeps, or waits for connections, files, children or another terminal as well
  bool has_timer = false;
  bool may_hide_timer = false;
  bool is_hidden = false;                             ///< something could not be looked at
  std::optional<milliseconds> timeout;                ///< of the thread that reads the input
  std::vector<std::pair<int, std::string>> others{};  ///< descriptors that are awaited beside the input
};

bool is_armed_timer(pid_t pid, int fd) {
  const auto info = read_file_at(AT_FDCWD, fmt::format("/proc/{}/fdinfo/{}", pid, fd), k_most_fdinfo_bytes);
  return info && info->find("it_value: (0, 0)") == std::string::npos;
}

/// Notes what a descriptor means that is awaited beside the input, or by another thread of the reader.
void look_at_other(pid_t pid, int fd, const std::string& link, Sight& sight) {
  const auto has = [&](std::string_view word) { return link.find(word) != std::string::npos; };
  if (has("[timerfd]")) {
    sight.has_timer = sight.has_timer || is_armed_timer(pid, fd);
  } else if (link.starts_with("socket:") || link.starts_with("pipe:")) {
    sight.does_more = sight.does_more || !is_connected_to_itself(pid, link);
  } else {
    sight.does_more = sight.does_more || link.ends_with("/ptmx") || has("inotify") || has("[pidfd]");
  }
}

void look_at_call(const ProcessEntry& process, const Blocked& call, const InputSource& source, Sight& sight) {
  const Awaited awaited = awaited_by(process.pid, call);
  sight.is_hidden = sight.is_hidden || awaited.is_hidden;
  sight.does_more = sight.does_more || awaited.is_sleep;
  bool reads = false;
  for (const int fd : awaited.descriptors) {
    const std::string link = read_link(fmt::format("/proc/{}/fd/{}", process.pid, fd));
    const bool own_terminal = source.terminal != 0 && link == "/dev/tty" && process.terminal == source.terminal;
    if (link == source.link || own_terminal) {
      reads = true;
    } else {
      sight.others.emplace_back(fd, link);
    }
  }
  if (reads) {
    const bool by_terminal = !awaited.timeout && source.read_timeout.count() > 0;
    const bool is_idle = !awaited.timeout || (awaited.in_event_loop && !is_own_timer(*awaited.timeout));
    sight.timeout = by_terminal ? source.read_timeout : is_idle ? std::nullopt : awaited.timeout;
    sight.has_timer = sight.has_timer || (awaited.in_event_loop && !is_idle);
    sight.may_hide_timer = is_idle && awaited.timeout;
    sight.reads_input = true;
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
  const AsUserOf identity(process.pid);
  Sight sight;
  if (!has_own_call_numbers(process.pid)) {
    // One that has just ended has no program any more.
    sight.is_hidden = ::access(fmt::format("/proc/{}/task", process.pid).c_str(), F_OK) == 0;
    return sight;
  }
  for (const pid_t thread : threads_of(process.pid)) {
    look_at_thread(process, thread, source, sight);
  }
  if (sight.reads_input) {
    for (const auto& [fd, link] : sight.others) {
      look_at_other(process.pid, fd, link, sight);
    }
  }
  return sight;
}

/// A program that may not be looked into (su, sudo) and has its terminal's foreground while that takes a password.
bool asks_for_secret(const ProcessEntry& process, const Sight& sight, const InputSource& source) {
  return sight.is_hidden && source.is_secret && process.terminal == source.terminal &&
         process.group == process.foreground_group && process.state == 'S';
}

/// Whether every other process is an ancestor of `reader`. Parents come before their children.
bool is_alone(const std::vector<ProcessEntry>& processes, pid_t reader) {
  pid_t wanted = reader;
  std::size_t ancestors = 0;
  for (auto process = processes.rbegin(); process != processes.rend(); ++process) {
    if (process->pid == wanted) {
      wanted = process->parent;
      ++ancestors;
    }
  }
  return ancestors == processes.size();
}

}  // namespace

InputSource input_source(int fd) {
  struct stat info {};
  InputSource source;
  source.link = read_link(fmt::format("/proc/self/fd/{}", fd));
  termios modes{};
  if (::fstat(fd, &info) == 0 && S_ISCHR(info.st_mode) && ::tcgetattr(fd, &modes) == 0) {
    constexpr milliseconds k_termios_unit{100};
    const bool by_lines = (modes.c_lflag & ICANON) != 0;
    source.terminal = terminal_number(info.st_rdev);
    source.is_secret = by_lines && (modes.c_lflag & ECHO) == 0;
    source.read_timeout = !by_lines && modes.c_cc[VMIN] == 0 ? modes.c_cc[VTIME] * k_termios_unit : milliseconds(0);
  }
  return source;
}

InputWait waits_for_input(const std::vector<ProcessEntry>& processes, const InputSource& source) {
  static const bool kernel_tells = ::access("/proc/self/syscall", F_OK) == 0;
  InputWait timed;
  InputWait certain;
  bool doubtful = !kernel_tells;
  bool works = false;
  bool may_ask_secret = false;
  for (const ProcessEntry& process : processes) {
    if (process.is_stopped()) {
      continue;
    }
    const Sight sight = look_at_process(process, source);
    const bool reads = sight.reads_input || asks_for_secret(process, sight, source);
    if (reads && !sight.does_more) {
      InputWait& found = sight.has_timer ? timed : certain;
      found = {.waits = WaitsForInput::yes,
               .has_timer = sight.has_timer,
               .may_hide_timer = sight.may_hide_timer,
               .timeout = sight.timeout.value_or(milliseconds(0)),
               .is_alone = !sight.is_hidden && is_alone(processes, process.pid)};
    }
    doubtful = doubtful || sight.is_hidden || sight.reads_input;
    may_ask_secret = may_ask_secret || (sight.is_hidden && source.is_secret && process.state == 'S');
    works = works || process.state == 'R' || process.state == 'D';
  }
  if (certain.waits == WaitsForInput::yes && !works) {
    return certain;
  }
  if (timed.waits == WaitsForInput::yes && !works) {
    timed.waits = WaitsForInput::unknown;
    return timed;
  }
  return {.waits = doubtful || certain.waits == WaitsForInput::yes ? WaitsForInput::unknown : WaitsForInput::no,
          .may_ask_secret = may_ask_secret && !works};
}

}  // namespace dockbridge::agent
