// The least a command can cost: starts a program and waits for its end, over and over, and prints how many nanoseconds
// each time took, one a line. Usage: bare_spawn COUNT PROGRAM ARGUMENT...
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern char** environ;

namespace {

constexpr int k_warm_up_runs = 5;

/// posix_spawn rather than fork: the quicker of the two, so that the comparison flatters nobody.
bool run_once(char** argv) {
  pid_t pid = 0;
  int status = 0;
  return ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv, environ) == 0 && ::waitpid(pid, &status, 0) == pid &&
         status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[1]) : 0;
  if (count <= 0) {
    std::fputs("usage: bare_spawn COUNT PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  std::vector<long long> times;
  for (int run = -k_warm_up_runs; run < count; ++run) {
    const auto began = std::chrono::steady_clock::now();
    if (!run_once(argv + 2)) {
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
