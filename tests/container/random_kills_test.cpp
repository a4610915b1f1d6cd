#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <random>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/full.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr int k_lines = 30'000;

/// Writes numbers to stdout and stderr, in bursts, so output is in transit all the time.
const std::string k_talker = fmt::format(
    "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo $i; [ $((i % 3)) = 0 ] && echo e$i >&2; [ $((i % 500)) = 0 ] && "
    "sleep "
    "0.01; done; exit 3",
    k_lines);

std::string expected_stdout() {
  std::string text;
  for (int i = 1; i <= k_lines; ++i) {
    text += std::to_string(i) + "\n";
  }
  return text;
}

std::string expected_stderr() {
  std::string text;
  for (int i = 3; i <= k_lines; i += 3) {
    text += fmt::format("e{}\n", i);
  }
  return text;
}

/// All output of a process, read from cursor to cursor, and the last reply.
struct Output {
  std::string out;
  std::string err;
  json last;
};

Output read_all(Server& server, const std::string& process) {
  Output output;
  std::string cursor = "0:0";
  while (true) {
    output.last =
        fields_of(check(server, process, {{"since", cursor}, {"maxOutput", 400000}, {"raw", true}, {"timeout", 60}}));
    output.out += field(output.last, "stdout").get<std::string>();
    output.err += field(output.last, "stderr").get<std::string>();
    if (field(output.last, "cursor") == cursor) {
      return output;
    }
    cursor = field(output.last, "cursor");
  }
}

}  // namespace

TEST_CASE("kills: kill -9 of server and session at random loses no output") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::minstd_rand random(20);
  const int rounds = full_run() ? 200 : 20;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    std::string id;
    {
      Server first({"-c", container.name()});
      first.initialize();
      id = start_in_background(first, k_talker);
      const auto line = 1 + random() % k_lines;
      const json there =
          check(first, id, {{"waitFor", {{"pattern", fmt::format("^{}$", line)}}}, {"tail", 1}, {"timeout", 60}});
      CHECK(field(fields_of(there), "happened") == "pattern");
      if (random() % 2 == 0) {
        first.signal(SIGKILL);
      } else {
        for (const int pid : container.pids_of(k_session)) {
          ::kill(pid, SIGKILL);
        }
      }
    }
    Server second({"-c", container.name()});
    second.initialize();
    const Output output = read_all(second, id);
    CHECK(field(output.last, "exitCode") == 3);
    CHECK(output.out == expected_stdout());
    CHECK(output.err == expected_stderr());
  }
}
