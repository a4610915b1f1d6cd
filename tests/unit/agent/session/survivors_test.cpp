#include "agent/session/survivors.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "support/program.hpp"

using namespace dockbridge;
using agent::count_survivors;
using agent::signal_survivors;

namespace {

/// A script that runs with this variable in its environment. Killed at the end of the test.
class Command {
 public:
  Command(const std::string& script, const std::string& variable) : m_pid(::fork()) {
    if (m_pid == 0) {
      ::setpgid(0, 0);
      const std::array<const char*, 3> environment = {"PATH=/usr/bin:/bin", variable.c_str(), nullptr};
      ::execle("/bin/sh", "sh", "-c", script.c_str(), nullptr, environment.data());
      ::_exit(127);
    }
  }
  ~Command() {
    ::kill(-m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

 private:
  pid_t m_pid;
};

}  // namespace

TEST_CASE("survivors: all are signalled even if they exceed the limit of descriptors") {
  constexpr int k_of_each_kind = 150;
  constexpr int k_all = 1 + 2 * k_of_each_kind;
  constexpr rlim_t k_descriptors = 280;
  const std::string process = fmt::format("proc_{}_many", ::getpid());
  const std::string script =
      fmt::format("for i in $(seq {0}); do sleep 600 & done; for i in $(seq {0}); do env -i sleep 600 & done; wait",
                  k_of_each_kind);
  const Command command(script, fmt::format("{}={}", agent::k_process_variable, process));
  test::eventually("all of them run", [&] { return count_survivors(process) == k_all; });

  const pid_t sender = ::fork();
  if (sender == 0) {
    const rlimit few{k_descriptors, k_descriptors};
    ::_exit(::setrlimit(RLIMIT_NOFILE, &few) == 0 && signal_survivors(process, SIGKILL) == k_all ? 0 : 1);
  }
  int status = -1;
  CHECK(::waitpid(sender, &status, 0) == sender);
  CHECK(status == 0);
  test::eventually("none is left", [&] { return count_survivors(process) == 0; });
}
