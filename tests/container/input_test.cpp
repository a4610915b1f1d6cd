#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("input: a command that waits for input is reported with the next step") {
  Connected c;
  for (const std::string command : {"cat", "read x", "rg foo", "python3 -c 'input()'", "bash -i", "python3 -i",
                                    "python3 -c 'import getpass; "
                                    "getpass.getpass()'",
                                    "echo asking; head -1 > /dev/null"}) {
    CAPTURE(command);
    const json result = c.server.execute(command, {{"maxWaitTime", 15}});
    CAPTURE(result.dump());
    CHECK(field(fields_of(result), "returned") == "waits_for_input");
    CHECK(field(fields_of(result), "waitsForInput") == "yes");
    const std::string id = field(fields_of(result), "processId");
    CHECK(text_of(result).find(short_id_in(text_of(result)) + " waits for input.") != std::string::npos);
    CHECK(text_of(result).find("send_input") != std::string::npos);
    CHECK(field(fields_of(control(c.server, id, "kill")), "status") == "completed");
  }
}

TEST_CASE("input: another kind of wait is not reported as a wait for input") {
  Connected c;
  const json result = c.server.execute("sleep 1.5 | sort");
  CHECK(field(fields_of(result), "returned") == "ended");
  const std::string id = start_in_background(c.server, "sleep 60 | sort");
  CHECK(field(fields_of(check(c.server, id)), "waitsForInput") == "no");
}

TEST_CASE("input: a call continues after input, until the next wait for input") {
  Connected c;
  const std::string id =
      field(fields_of(c.server.execute("while read x; do sleep 0.3; echo \"got $x\"; done; echo over")), "processId");
  for (const std::string word : {"one", "two"}) {
    c.server.call("send_input", {{"processId", id}, {"input", word}});
    const json waited = check(c.server, id, {{"waitFor", {{"input", true}}}, {"timeout", 20}, {"tail", 1}});
    CHECK(field(fields_of(waited), "happened") == "input");
    CHECK(field(fields_of(waited), "stdout") == "got " + word + "\n");
  }
  const json last = c.server.call("send_input", {{"processId", id}, {"eof", true}});
  CHECK(field(fields_of(last), "stdout") == "over\n");
  CHECK(field(fields_of(last), "exitCode") == 0);
}

TEST_CASE("input: a process with closed or given input never waits for it") {
  Connected c;
  CHECK(field(fields_of(c.server.execute("cat; sleep 0.5", {{"stdin", "all of it"}})), "returned") == "ended");
  const std::string id = start_in_background(c.server, "cat; sleep 60");
  c.server.call("send_input", {{"processId", id}, {"eof", true}});
  CHECK(field(fields_of(check(c.server, id)), "waitsForInput") == "no");
  const json refused = c.server.call("send_input", {{"processId", id}, {"input", "more"}});
  CHECK(field(error_of(refused), "code") == "stdin_closed");
}

TEST_CASE("input: without a terminal, only two keys are accepted") {
  Connected c;
  const std::string first =
      start_in_background(c.server, "trap 'echo interrupted; exit 5' INT; while :; do sleep 0.1; done");
  CHECK(field(fields_of(check(c.server, first, {{"waitFor", {{"idle", 0.3}}}})), "happened") == "idle");
  press(c.server, first, {"ctrl-c"});
  const json ended = check(c.server, first, {{"timeout", 20}});
  CHECK(field(fields_of(ended), "stdout") == "interrupted\n");
  CHECK(field(fields_of(ended), "exitCode") == 5);
  const std::string second = start_in_background(c.server, "cat; echo end");
  press(c.server, second, {"ctrl-d"});
  CHECK(field(fields_of(check(c.server, second, {{"timeout", 20}})), "stdout") == "end\n");
  const std::string third = start_in_background(c.server, "cat");
  CHECK(field(error_of(press(c.server, third, {"up"})), "code") == "no_terminal");
}

TEST_CASE("input: invalid input is rejected with the reason") {
  Connected c;
  const std::string id = start_in_background(c.server, "cat");
  CHECK(field(error_of(c.server.call("send_input", {{"processId", id}})), "code") == "bad_arguments");
  CHECK(field(error_of(c.server.call("send_input", {{"processId", id}, {"keys", 5}})), "code") == "bad_arguments");
  CHECK(field(error_of(c.server.call("send_input", {{"processId", id}, {"keys", {1}}})), "code") == "bad_arguments");
  const json unknown = c.server.call("send_input", {{"processId", id}, {"keys", {"hyper-x"}}});
  CHECK(field(error_of(unknown), "message").get<std::string>().find("hyper-x") != std::string::npos);
}

TEST_CASE("send_input: after the end of input, the reply is the end of the process") {
  Connected c;
  const std::string id = start_in_background(c.server,
                                             "python3 -uc \"import sys,time; sys.stdin.read(); print('got'); "
                                             "time.sleep(1); print('result')\"");
  const json ended = c.server.call("send_input", {{"processId", id}, {"eof", true}, {"timeout", 20}});
  CHECK(field(fields_of(ended), "stdout") == "got\nresult\n");
  CHECK(field(fields_of(ended), "exitCode") == 0);
}

TEST_CASE("send_input: the end of a long answer is shown too") {
  Connected c;
  const std::string id = field(fields_of(c.server.execute("python3 -i -q")), "processId");
  const json answered = c.server.call(
      "send_input", {{"processId", id}, {"input", "print('x' * 99 + '\\n' * 1, *range(9000), 'the end')"}});
  CAPTURE(answered.dump());
  const std::string output = field(fields_of(answered), "stdout");
  CHECK(output.starts_with("xxx"));
  CHECK(output.find("8999 the end\n") != std::string::npos);
  CHECK(text_of(answered).size() < 10'000);
}
