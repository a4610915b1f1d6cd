#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::bench {

constexpr milliseconds k_command_patience{20'000};

/// Standard descriptors of a child; -1 means /dev/null. Borrowed while the child is started.
struct Stdio {
  int in = -1;
  int out = -1;
  int err = STDERR_FILENO;
};

struct Pipe {
  Fd read_end;
  Fd write_end;
};
Pipe make_pipe();

/// Waits until `fd` can be read or has ended; false after the deadline.
bool await_readable(int fd, Deadline deadline);

/// A child process; killed and reaped when it goes out of scope.
class Child {
 public:
  Child(std::vector<std::string> argv, std::vector<std::string> environment, const Stdio& stdio);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return m_pid; }
  /// Reaps it and returns its exit code, 128 + signal if one ended it. Throws if it does not end in time.
  int wait(Deadline deadline);

 private:
  pid_t m_pid = -1;
  Fd m_handle;
};

/// This program's own environment.
std::vector<std::string> own_environment();

/// Runs a program to its end; returns what it printed. Throws unless it exits with 0.
std::string run(const std::vector<std::string>& argv);

}  // namespace dockbridge::bench
