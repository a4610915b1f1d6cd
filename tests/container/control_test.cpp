#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Number of processes in the container that run a `sleep` of this length.
int sleepers(const Container& container, const std::string& span) {
  return std::stoi(container.sh(fmt::format("pgrep -cfx 'sleep {}' || true", span)));
}

void until_sleepers(const Container& container, const std::string& span, int count) {
  eventually("the expected number of sleeps runs", [&] { return sleepers(container, span) == count; });
}

/// A tree that tries to avoid detection: its own session, a double fork, signals ignored.
constexpr const char* k_hiding_tree =
    "trap '' TERM INT HUP; sleep 321 & setsid sleep 321 & (setsid nohup sleep 321 >/dev/null 2>&1 &) ; "
    "bash -c '(trap \"\" TERM; sleep 321; sleep 321) & disown'; wait; sleep 321";

}  // namespace

TEST_CASE("control: pause and resume apply to the whole tree") {
  Connected c;
  const std::string id = start_in_background(c.server, "while :; do echo tick; sleep 0.05; done");
  CHECK(field(fields_of(check(c.server, id, {{"waitFor", {{"pattern", "tick"}}}})), "happened") == "pattern");
  const json paused = control(c.server, id, "pause");
  CHECK(field(fields_of(paused), "paused") == true);
  CHECK(field(fields_of(paused), "status") == "running");
  const auto before = field(fields_of(check(c.server, id)), "stdoutBytes");
  const json later = check(c.server, id, {{"timeout", 1}});
  CHECK(field(fields_of(later), "stdoutBytes") == before);
  CHECK(text_of(later).find("is paused.") != std::string::npos);
  const json resumed = control(c.server, id, "resume");
  CHECK(field(fields_of(resumed), "paused") == false);
  const json grown =
      check(c.server, id, {{"since", field(fields_of(later), "cursor")}, {"waitFor", {{"pattern", "tick"}}}});
  CHECK(field(fields_of(grown), "happened") == "pattern");
}

TEST_CASE("control: paused time does not count as silence") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 100");
  const int call = c.server.start_call(
      "check_process", {{"processId", id}, {"waitFor", {{"idle", 3}, {"input", true}}}, {"timeout", 30}});
  control(c.server, id, "pause");
  CHECK(c.server.stays_silent(seconds(6)));
  control(c.server, id, "resume");
  const json answer = c.server.receive_answer(call);
  CHECK(field(fields_of(field(answer, "result")), "happened") == "idle");
}

TEST_CASE("control: terminate sends SIGTERM, and SIGKILL after the grace time") {
  Connected c;
  const std::string polite = start_in_background(c.server, "trap 'echo bye; exit 7' TERM; while :; do sleep 0.1; done");
  check(c.server, polite, {{"waitFor", {{"idle", 0.3}}}});
  const json ended = control(c.server, polite, "terminate");
  CHECK(field(fields_of(ended), "exitCode") == 7);
  CHECK(field(fields_of(ended), "cause") == "terminated");
  CHECK(field(fields_of(check(c.server, polite)), "stdout") == "bye\n");
  const std::string stubborn = start_in_background(c.server, "trap '' TERM; while :; do sleep 0.1; done");
  check(c.server, stubborn, {{"waitFor", {{"idle", 0.3}}}});
  CHECK(field(fields_of(control(c.server, stubborn, "terminate", {{"grace", 0.5}})), "signal") == "SIGKILL");
}

TEST_CASE("control: interrupt and any signal are delivered") {
  Connected c;
  const std::string id = start_in_background(
      c.server,
      "trap 'echo int' INT; trap 'echo usr1' USR1; trap 'echo hup; exit 0' HUP; while :; do sleep 0.05; done");
  check(c.server, id, {{"waitFor", {{"idle", 0.3}}}});
  control(c.server, id, "interrupt");
  CHECK(field(fields_of(check(c.server, id, {{"waitFor", {{"pattern", "^int$"}}}})), "happened") == "pattern");
  control(c.server, id, "signal", {{"signal", "usr1"}});
  CHECK(field(fields_of(check(c.server, id, {{"waitFor", {{"pattern", "^usr1$"}}}})), "happened") == "pattern");
  control(c.server, id, "signal", {{"signal", "1"}});
  CHECK(field(fields_of(check(c.server, id, {{"timeout", 20}})), "exitCode") == 0);
}

TEST_CASE("control: every way to end a process ends all its descendants") {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--init"}, std::vector<std::string>{}}) {
    Connected c(options);
    const std::string bystander = start_in_background(c.server, "sleep 654");
    SUBCASE("terminate") {
      const std::string id = start_in_background(c.server, k_hiding_tree);
      until_sleepers(c.container, "321", 4);
      control(c.server, id, "terminate", {{"grace", 0.3}});
    }
    SUBCASE("kill") {
      const std::string id = start_in_background(c.server, k_hiding_tree);
      until_sleepers(c.container, "321", 4);
      CHECK(field(fields_of(control(c.server, id, "kill")), "status") == "completed");
    }
    SUBCASE("maxRuntime") {
      c.server.execute(k_hiding_tree, {{"maxRuntime", 1}});
    }
    SUBCASE("cancel") {
      const int call = c.server.start_call("execute_command", {{"command", k_hiding_tree}});
      until_sleepers(c.container, "321", 4);
      c.server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", call}}}});
      eventually("the reason is reported", [&] {
        const json list = field(fields_of(c.server.call("check_process", json::object())), "processes");
        return std::any_of(list.begin(), list.end(),
                           [](const json& it) { return it.value("cause", "") == "cancelled"; });
      });
    }
    until_sleepers(c.container, "321", 0);
    CHECK(sleepers(c.container, "654") == 1);
    CHECK(field(fields_of(check(c.server, bystander)), "status") == "running");
    eventually("no zombies", [&] { return c.container.zombies() == 0; });
  }
}

TEST_CASE("control: ended, unknown and invalid targets are rejected") {
  Connected c;
  const std::string ended = field(fields_of(c.server.execute("true")), "processId");
  CHECK(field(error_of(control(c.server, ended, "kill")), "code") == "process_ended");
  CHECK(field(error_of(control(c.server, "proc_1_nothing", "kill")), "code") == "process_gone");
  CHECK(field(error_of(control(c.server, "nonsense", "kill")), "code") == "bad_process_id");
  const std::string id = start_in_background(c.server, "sleep 60");
  CHECK(field(error_of(control(c.server, id, "explode")), "code") == "bad_arguments");
  CHECK(field(error_of(control(c.server, id, "signal")), "code") == "bad_arguments");
  CHECK(field(error_of(control(c.server, id, "signal", {{"signal", "SIGNOTHING"}})), "code") == "bad_arguments");
  CHECK(field(error_of(control(c.server, id, "resize")), "code") == "bad_arguments");
  CHECK(field(error_of(control(c.server, id, "resize", {{"cols", 80}, {"rows", 24}})), "code") == "no_terminal");
  CHECK(field(error_of(control(c.server, id, "terminate", {{"grace", -1}})), "code") == "bad_arguments");
  CHECK(field(fields_of(check(c.server, id)), "status") == "running");
}
