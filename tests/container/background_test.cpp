// Processes that a call leaves running: early ends, ports, and notices in later replies.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/served.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr const char* k_server = "exec python3 -m http.server 8123 --bind 127.0.0.1";

bool has(const json& result, const std::string& text) {
  return text_of(result).find(text) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// Waits for the end of a process without a call that would report it.
void await_end(const Container& container, const std::string& command) {
  eventually("the process ends", [&] { return container.pids_of(command).empty(); });
}

}  // namespace

TEST_CASE("background: an immediate end is reported with exit code and output") {
  Connected c;
  const json failed = c.server.execute("echo cannot start >&2; exit 3", {{"background", true}});
  CAPTURE(failed.dump());
  CHECK(field(fields_of(failed), "exitCode") == 3);
  CHECK(has(failed, "cannot start"));
  CHECK(has(failed, "Exit code: 3"));
  const auto began = Clock::now();
  const json runs = c.server.execute("echo up; sleep 600", {{"background", true}});
  CHECK(Clock::now() - began > milliseconds(400));
  CHECK(field(fields_of(runs), "status") == "running");
  CHECK(has(runs, "up"));
}

TEST_CASE("background: a start waits for a port, a line or the end") {
  Connected c;
  const json port = c.server.execute(k_server, {{"background", true}, {"waitFor", {{"port", 8123}}}});
  CAPTURE(port.dump());
  CHECK(has(port, "Port 8123 is open"));
  CHECK_FALSE(has(port, "not by"));
  CHECK(field(fields_of(port), "happened") == "port");
  const json line =
      c.server.execute("sleep 1; echo listening on 99; sleep 600", {{"waitFor", {{"pattern", "listening"}}}});
  CHECK(has(line, "Matched line: listening on 99"));
  CHECK(field(fields_of(line), "happened") == "pattern");
  const json end = c.server.execute("sleep 1; exit 4", {{"background", true}, {"waitFor", {{"exit", true}}}});
  CHECK(field(fields_of(end), "exitCode") == 4);
  const json late = c.server.execute("sleep 600", {{"waitFor", {{"pattern", "never"}}}, {"timeout", 1}});
  CHECK(field(fields_of(late), "happened") == "timeout");
  CHECK(field(fields_of(late), "status") == "running");
}

TEST_CASE("background: a port that another process holds is reported with its name") {
  Connected c;
  const json first = c.server.execute(k_server, {{"background", true}, {"waitFor", {{"port", 8123}}}});
  REQUIRE(has(first, "p1"));
  SUBCASE("the command ends because of it") {
    const json second = c.server.execute(k_server, {{"background", true}, {"waitFor", {{"port", 8123}}}});
    CAPTURE(second.dump());
    CHECK(field(fields_of(second), "exitCode") == 1);
    CHECK(has(second, "Address already in use"));
    CHECK(has(second, "Port 8123 is held by p1 (pid "));
    CHECK(has(second, "http.server"));
  }
  SUBCASE("the command continues") {
    const json second = c.server.execute("sleep 600", {{"background", true}, {"waitFor", {{"port", 8123}}}});
    CAPTURE(second.dump());
    CHECK(field(fields_of(second), "status") == "running");
    CHECK(has(second, "Port 8123 is held by p1 (pid "));
    CHECK_FALSE(has(second, "is open"));
  }
  SUBCASE("the command continues to print, and the client follows its progress") {
    const auto began = Clock::now();
    const int call = c.server.start_call(
        "execute_command",
        {{"command", "while :; do echo x$((i += 1)); sleep 0.1; done"}, {"waitFor", {{"port", 8123}}}, {"timeout", 60}},
        {{"progressToken", 1}});
    const json second = field(c.server.receive_answer(call), "result");
    CAPTURE(second.dump());
    CHECK(has(second, "Port 8123 is held by p1 (pid "));
    CHECK(Clock::now() - began < seconds(30));
  }
  SUBCASE("it is none of ours") {
    control(c.server, "p1", "kill");
    run_ok({"docker", "exec", "-d", c.container.name(), "sh", "-c", k_server});
    eventually("the server listens",
               [&] { return c.container.sh("cat /proc/net/tcp").find(":1FBB") != std::string::npos; });
    const json second = c.server.execute("sleep 600", {{"background", true}, {"waitFor", {{"port", 8123}}}});
    CAPTURE(second.dump());
    CHECK(has(second, "Port 8123 is held by pid "));
    CHECK(has(second, "http.server"));
  }
}

TEST_CASE("background: a server that another user runs is seen as the listener") {
  Connected c;
  const json started = c.server.execute(std::string("cd /; ") + k_server,
                                        {{"user", "nobody"}, {"background", true}, {"waitFor", {{"port", 8123}}}});
  CAPTURE(started.dump());
  CHECK(has(started, "Port 8123 is open"));
  CHECK_FALSE(has(started, "cannot be determined"));
}

TEST_CASE("background: a listener that cannot be determined is reported as such") {
  // Without privileges, the agent cannot look into the processes of root.
  Connected c({"--init", "--user", "1000:1000"});
  run_ok({"docker", "exec", "-d", "--user", "0", c.container.name(), "sh", "-c", k_server});
  eventually("the server listens",
             [&] { return c.container.sh("cat /proc/net/tcp").find(":1FBB") != std::string::npos; });
  const json result = c.server.execute("sleep 600", {{"background", true}, {"waitFor", {{"port", 8123}}}});
  CAPTURE(result.dump());
  CHECK(has(result, "Port 8123 is open, but its listener cannot be determined"));
}

TEST_CASE("background: an end is mentioned once, in the next reply of any tool") {
  Connected c;
  REQUIRE(has(c.server.execute("sleep 1.2; exit 7", {{"background", true}}), "p1"));
  await_end(c.container, "sleep 1.2");
  const json reply = c.server.call("file_ls", {{"path", "/app"}});
  CAPTURE(reply.dump());
  CHECK(count(text_of(reply), "p1 `sleep 1.2; exit 7` ended, exit code 7") == 1);
  CHECK_FALSE(has(c.server.call("file_ls", {{"path", "/app"}}), "ended"));
  CHECK_FALSE(has(c.server.execute("true"), "p1"));
}

TEST_CASE("background: an end that a reply has shown is not mentioned again") {
  Connected c;
  c.server.execute("sleep 600", {{"background", true}, {"timeout", 0}});
  control(c.server, "p1", "kill");
  CHECK_FALSE(has(c.server.execute("true"), "p1"));
  c.server.execute("sleep 0.7", {{"background", true}});
  check(c.server, "p3", {{"waitFor", {{"exit", true}}}});
  CHECK_FALSE(has(c.server.execute("true"), "p3"));
  c.server.execute("sleep 0.71", {{"background", true}});
  await_end(c.container, "sleep 0.71");
  CHECK(count(text_of(c.server.call("check_process", json::object())), "p5 ") == 1);
  CHECK_FALSE(has(c.server.execute("true"), "p5"));
}

TEST_CASE("background: an error reply mentions an end, also after a lost connection") {
  Connected c;
  c.server.execute("sleep 1.3; exit 9", {{"background", true}});
  for (const int pid : c.container.pids_of(k_session)) {
    CHECK(run({"kill", "-9", std::to_string(pid)}).exit_code == 0);
  }
  CHECK_FALSE(has(c.server.execute("true"), "p1"));
  await_end(c.container, "sleep 1.3");
  std::string told;
  eventually("the end is mentioned", [&] {
    told = text_of(check(c.server, "p77"));
    return told.find("ended") != std::string::npos;
  });
  CHECK(count(told, "p1 `sleep 1.3; exit 9` ended, exit code 9") == 1);
}

TEST_CASE("background: only the client that started a process is notified of its end") {
  const Served served;
  (void)served.call(k_alice, "execute_command", {{"command", "sleep 1.4"}, {"background", true}});
  await_end(served.container, "sleep 1.4");
  CHECK_FALSE(has(served.call(k_bob, "execute_command", {{"command", "echo hi"}}), "ended"));
  CHECK(has(served.call(k_alice, "execute_command", {{"command", "echo hi"}}), "p1 `sleep 1.4` ended, exit code 0"));
}

TEST_CASE("background: a notice in an undelivered reply is repeated in the next") {
  const Served served;
  const std::string session = served.initialize(k_alice);
  (void)served.call_in(session, k_alice, "execute_command", {{"command", "sleep 1.5; exit 6"}, {"background", true}});
  {
    HttpConnection leaving(served.port());
    served.begin_call_in(session, k_alice, leaving, "execute_command", {{"command", "sleep 2.5"}});
    eventually("the command runs", [&] { return !served.container.pids_of("sleep 2.5").empty(); });
    leaving.close();
  }
  await_end(served.container, "sleep 2.5");
  const std::string note = "p1 `sleep 1.5; exit 6` ended, exit code 6";
  std::size_t told = 0;
  eventually("the end is mentioned", [&] {
    told += count(text_of(served.call_in(session, k_alice, "execute_command", {{"command", "true"}})), note);
    return told > 0;
  });
  CHECK_FALSE(has(served.call_in(session, k_alice, "execute_command", {{"command", "true"}}), note));
}

TEST_CASE("check_process: waits for the first of several processes") {
  Connected c;
  c.server.execute("sleep 600", {{"background", true}, {"timeout", 0}});
  c.server.execute("sleep 1; echo done; exit 5", {{"background", true}, {"timeout", 0}});
  const json result = c.server.call("check_process", {{"processIds", {"p1", "p2"}}, {"timeout", 30}});
  CAPTURE(result.dump());
  CHECK(field(fields_of(result), "exitCode") == 5);
  CHECK(has(result, "done"));
  CHECK(has(result, "p1 running"));
  const json error = c.server.call("check_process", {{"processIds", {"p1", "p9"}}});
  CHECK(field(error_of(error), "code") == "no_such_process");
  c.server.execute("sleep 601", {{"background", true}, {"timeout", 0}});
  const json late =
      c.server.call("check_process", {{"processIds", {"p1", "p3"}}, {"waitFor", {{"port", 9}}}, {"timeout", 0.5}});
  CHECK(field(fields_of(late), "happened") == "timeout");
  CHECK(has(late, "p1 running"));
  CHECK(has(late, "p3 running"));
}

TEST_CASE("control_process: ends several processes, with a line for each") {
  Connected c;
  for (int i = 0; i < 3; ++i) {
    c.server.execute("sleep 600", {{"background", true}, {"timeout", 0}});
  }
  const json result = c.server.call("control_process", {{"processIds", {"p1", "p3", "p7"}}, {"action", "kill"}});
  CAPTURE(result.dump());
  CHECK(count(text_of(result), "\n") == 2);
  CHECK(has(result, "p1 ended"));
  CHECK(has(result, "p3 ended"));
  CHECK(has(result, "Process not found: p7"));
  CHECK(field(fields_of(check(c.server, "p2")), "status") == "running");
  CHECK(field(fields_of(check(c.server, "p3")), "signal") == "SIGKILL");
}
