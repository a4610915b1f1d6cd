#include <doctest/doctest.h>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A fifth of a CPU for all that runs in the container.
const std::vector<std::string> k_narrow = {"--init", "--cpus", "0.2"};
constexpr int k_silence_seconds = 3;
/// Silent, and needs more than a fifth of a CPU can give it in that time, whatever the machine; but less than a whole
/// one.
constexpr const char* k_worker = "python3 -c 'import time\nwhile time.process_time() < 1.2: pass\nprint(\"worked\")'";
constexpr const char* k_busy_loop = "while :; do :; done";

}  // namespace

TEST_CASE("a silent command that has no CPU to run on is not called quiet, if the limit may be stretched") {
  Connected c(k_narrow, "dockbridge-test:slim", {"--load-stretch", "20"});
  start_in_background(c.server, k_busy_loop);
  const int worker =
      c.server.start_call("execute_command", {{"command", k_worker}, {"maxWaitTime", k_silence_seconds}});
  const int sleeper =
      c.server.start_call("execute_command", {{"command", "sleep 600"}, {"maxWaitTime", k_silence_seconds}});
  // The machine is as busy for one that idles, but that is not why it is silent.
  const json idle = c.server.receive_answer(sleeper, seconds(60))["result"];
  CHECK(field(fields_of(idle), "returned") == "quiet");
  CHECK(c.server.seen.empty());
  const json worked = c.server.receive_answer(worker, seconds(60))["result"];
  CAPTURE(worked.dump());
  CHECK(field(fields_of(worked), "returned") == "ended");
  CHECK(field(fields_of(worked), "stdout") == "worked\n");
}

TEST_CASE("a silent command that has no CPU to run on is called quiet otherwise") {
  Connected c(k_narrow);
  start_in_background(c.server, k_busy_loop);
  CHECK(field(fields_of(c.server.execute(k_worker, {{"maxWaitTime", k_silence_seconds}})), "returned") == "quiet");
}

TEST_CASE("the limit is stretched by no more than its factor") {
  Connected c(k_narrow, "dockbridge-test:slim", {"--load-stretch", "1.2"});
  start_in_background(c.server, k_busy_loop);
  CHECK(field(fields_of(c.server.execute(k_busy_loop, {{"maxWaitTime", k_silence_seconds}})), "returned") == "quiet");
}
