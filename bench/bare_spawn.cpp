// Lower bound for the cost of a program: starts it repeatedly, waits for its end, and prints the nanoseconds of each
// run, one a line. Usage: bare_spawn [--quiet] COUNT PROGRAM ARGUMENT...
// --quiet: its output goes to /dev/null, and exit status 1 is accepted, as of searches without a match.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int k_max_warm_up_runs = 5;

/// posix_spawn rather than fork, because it is the faster of the two.
bool run_once(char** argv, const posix_spawn_file_actions_t* actions, int worst_status) {
  pid_t pid = 0;
  int status = 0;
  return ::posix_spawn(&pid, argv[0], actions, nullptr, argv, environ) == 0 && ::waitpid(pid, &status, 0) == pid &&
         WIFEXITED(status) && WEXITSTATUS(status) <= worst_status;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quiet = argc > 1 && std::strcmp(argv[1], "--quiet") == 0;
  char** given = argv + (quiet ? 2 : 1);
  const int count = given + 1 < argv + argc ? std::atoi(*given) : 0;
  if (count <= 0) {
    std::fputs("usage: bare_spawn [--quiet] COUNT PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  posix_spawn_file_actions_t to_nowhere;
  ::posix_spawn_file_actions_init(&to_nowhere);
  ::posix_spawn_file_actions_addopen(&to_nowhere, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<long long> times;
  for (int run = -std::min(k_max_warm_up_runs, (count + 2) / 3); run < count; ++run) {
    const auto began = std::chrono::steady_clock::now();
    if (!run_once(given + 1, quiet ? &to_nowhere : nullptr, quiet ? 1 : 0)) {
      std::fputs("bare_spawn: the program does not start, or fails\n", stderr);
      return 1;
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
    if (run >= 0) {
      times.push_back(took.count());
    }
  }
  for (const long long time : times) {
    std::printf("%lld\n", time);
  }
  return 0;
}
