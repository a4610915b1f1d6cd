#include "child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "interruption.hpp"

extern char** environ;

namespace dockbridge::bench {

namespace {

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&m_actions); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&m_actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void set(int fd, int target, int null_flags) {
    if (fd < 0) {
      ::posix_spawn_file_actions_addopen(&m_actions, target, "/dev/null", null_flags, 0);
    } else {
      ::posix_spawn_file_actions_adddup2(&m_actions, fd, target);
    }
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &m_actions; }

 private:
  posix_spawn_file_actions_t m_actions{};
};

std::vector<char*> c_strings(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("cannot create a pipe");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

bool await_readable(int fd, Deadline deadline) {
  while (true) {
    check_interruption();
    pollfd polled{fd, POLLIN, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(deadline.remaining().count()));
    if (ready > 0) {
      return true;
    }
    if (ready == 0 && deadline.passed()) {
      return false;
    }
  }
}

Child::Child(std::vector<std::string> argv, std::vector<std::string> environment, const Stdio& stdio) {
  FileActions actions;
  actions.set(stdio.in, STDIN_FILENO, O_RDONLY);
  actions.set(stdio.out, STDOUT_FILENO, O_WRONLY);
  actions.set(stdio.err, STDERR_FILENO, O_WRONLY);
  const auto arguments = c_strings(argv);
  const auto variables = c_strings(environment);
  const int error = ::posix_spawnp(&m_pid, arguments[0], actions.get(), nullptr, arguments.data(), variables.data());
  if (error != 0) {
    throw std::runtime_error(fmt::format("cannot run '{}': {}", argv.front(), std::strerror(error)));
  }
  m_handle.reset(static_cast<int>(::syscall(SYS_pidfd_open, m_pid, 0)));
}

Child::~Child() {
  if (m_pid > 0) {
    ::kill(m_pid, SIGKILL);
    while (::waitpid(m_pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

int Child::wait(Deadline deadline) {
  if (!await_readable(m_handle.get(), deadline)) {
    throw std::runtime_error(fmt::format("process {} did not end", m_pid));
  }
  int status = 0;
  ::waitpid(m_pid, &status, 0);
  m_pid = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

std::string run(const std::vector<std::string>& argv) {
  Pipe out = make_pipe();
  Child child(argv, own_environment(), {-1, out.write_end.get()});
  out.write_end.reset();
  const auto deadline = Deadline::after(k_command_patience);
  std::string printed;
  std::array<char, 16384> buffer;
  while (await_readable(out.read_end.get(), deadline)) {
    const ssize_t got = ::read(out.read_end.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      break;
    }
    printed.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (const int code = child.wait(deadline); code != 0) {
    throw std::runtime_error(fmt::format("'{}' failed with {}", fmt::join(argv, " "), code));
  }
  return printed;
}

}  // namespace dockbridge::bench
