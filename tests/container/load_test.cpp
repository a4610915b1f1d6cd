#include <doctest/doctest.h>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A fifth of a CPU for the whole container.
const std::vector<std::string> k_narrow = {"--init", "--cpus", "0.2"};
constexpr int k_silence_seconds = 3;
/// A silent command that needs more CPU time than a fifth of a CPU provides, and less than a whole one.
constexpr const char* k_worker = "python3 -c 'import time\nwhile time.process_time() < 1.2: pass\nprint(\"worked\")'";
constexpr const char* k_busy_loop = "while :; do :; done";

}  // namespace

TEST_CASE("load: a starved command is not silent if the limit may be extended") {
  Connected c(k_narrow, "dockbridge-test:slim", {"--load-stretch", "20"});
  start_in_background(c.server, k_busy_loop);
  const int worker =
      c.server.start_call("execute_command", {{"command", k_worker}, {"maxWaitTime", k_silence_seconds}});
  const int sleeper =
      c.server.start_call("execute_command", {{"command", "sleep 600"}, {"maxWaitTime", k_silence_seconds}});
  // For an idle command the machine is as busy, but that is not the reason for its silence.
  const json idle = field(c.server.receive_answer(sleeper, seconds(60)), "result");
  CHECK(field(fields_of(idle), "returned") == "quiet");
  CHECK(c.server.seen.empty());
  const json worked = field(c.server.receive_answer(worker, seconds(60)), "result");
  CAPTURE(worked.dump());
  CHECK(field(fields_of(worked), "returned") == "ended");
  CHECK(field(fields_of(worked), "stdout") == "worked\n");
}

TEST_CASE("load: a starved command counts as silent without an extension") {
  Connected c(k_narrow);
  start_in_background(c.server, k_busy_loop);
  CHECK(field(fields_of(c.server.execute(k_worker, {{"maxWaitTime", k_silence_seconds}})), "returned") == "quiet");
}

TEST_CASE("load: the limit is extended at most by its factor") {
  Connected c(k_narrow, "dockbridge-test:slim", {"--load-stretch", "1.2"});
  start_in_background(c.server, k_busy_loop);
  CHECK(field(fields_of(c.server.execute(k_busy_loop, {{"maxWaitTime", k_silence_seconds}})), "returned") == "quiet");
}
