#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("waiting: the first condition ends a wait and is reported") {
  Connected c;
  const json all = {{"pattern", "ready"}, {"port", 8123}, {"idle", 30}, {"input", true}};
  const auto happened = [&](const std::string& command, const json& wait_for, double timeout = 20) {
    const std::string id = start_in_background(c.server, command);
    const json result = check(c.server, id, {{"waitFor", wait_for}, {"timeout", timeout}});
    control(c.server, id, "kill");
    return field(fields_of(result), "happened").get<std::string>();
  };
  CHECK(happened("sleep 0.3; exit 3", all) == "exit");
  CHECK(happened("sleep 0.3; echo it is ready; sleep 60", all) == "pattern");
  CHECK(happened("sleep 0.3; echo it is ready >&2; sleep 60", all) == "pattern");
  CHECK(happened("sleep 0.3; printf 'ready? '; sleep 60", all) == "pattern");
  CHECK(happened("sleep 0.3; exec python3 -m http.server 8123 --bind 127.0.0.1", all) == "port");
  CHECK(happened("sleep 0.3; exec python3 -m http.server 8123 --bind ::", all) == "port");
  CHECK(happened("sleep 0.3; read x", all) == "input");
  CHECK(happened("sleep 60", {{"idle", 0.5}}) == "idle");
  CHECK(happened("sleep 60", all, 0.5) == "timeout");
  CHECK(happened("sleep 60", {{"exit", true}}, 0.5) == "timeout");
}

TEST_CASE("check_process: a plain timeout ends when the process waits for input") {
  Connected c;
  const std::string id =
      start_in_background(c.server, "sleep 1; read -p 'Proceed? [y/N] ' x; echo \"got $x\"", {{"tty", true}});
  const auto began = Clock::now();
  const json asked = check(c.server, id, {{"timeout", 30}});
  CAPTURE(asked.dump());
  CHECK(Clock::now() - began < seconds(15));
  CHECK(field(fields_of(asked), "happened") == "input");
  CHECK(
      text_of(asked).starts_with(short_id_in(text_of(asked)) + " waits for input. send_input answers it.\n\nProceed?"));
  control(c.server, id, "kill");
}

TEST_CASE("execute_command: a wait that times out reports a wait for input") {
  Connected c;
  const json missed =
      c.server.execute("read -p 'Name: ' x", {{"waitFor", {{"pattern", "ready"}, {"input", false}}}, {"timeout", 1}});
  CAPTURE(missed.dump());
  CHECK(text_of(missed).ends_with(" waits for input. send_input answers it.\nNo line matched after 1 s."));
}

TEST_CASE("waiting: a prompt ends a wait for a port or a line") {
  Connected c;
  const auto began = Clock::now();
  for (const json& awaited : {json{{"port", 3000}}, json{{"pattern", "ready"}}}) {
    const json asked = c.server.execute("sleep 0.3; read -p 'Port in use, use another? ' x", {{"waitFor", awaited}});
    CAPTURE(asked.dump());
    CHECK(field(fields_of(asked), "happened") == "input");
    CHECK(text_of(asked).ends_with(" waits for input. send_input answers it.\nwaitFor with input: false waits on."));
    const std::string id = field(fields_of(asked), "processId");
    CHECK(field(fields_of(check(c.server, id, {{"waitFor", awaited}})), "happened") == "input");
  }
  // A program with other work besides its input is not waiting.
  const json serving = c.server.execute(
      "node -e 'process.stdin.resume(); setTimeout(() => console.log(\"ready\"), 1500); setInterval(() => {}, 60000)'",
      {{"waitFor", {{"pattern", "ready"}}}});
  CHECK(field(fields_of(serving), "happened") == "pattern");
  CHECK(Clock::now() - began < seconds(40));
}

TEST_CASE("list: names the processes that wait for input or are paused") {
  Connected c;
  c.server.execute("read x");
  c.server.execute("sleep 600", {{"background", true}});
  control(c.server, "p2", "pause");
  c.server.execute("echo up; sleep 601", {{"background", true}});
  const std::string list = text_of(c.server.call("check_process", json::object()));
  CAPTURE(list);
  CHECK(list.find("waits for input: read x") != std::string::npos);
  CHECK(list.find("p2 paused ") != std::string::npos);
  CHECK(list.find("p3 running ") != std::string::npos);
  control(c.server, "p2", "resume");
  c.server.call("send_input", {{"processId", "p1"}, {"input", "y"}});
  const std::string after = text_of(c.server.call("check_process", json::object()));
  CAPTURE(after);
  CHECK(after.find("p2 running ") != std::string::npos);
  CHECK(after.find("waits for input") == std::string::npos);
}

TEST_CASE("waiting: a pattern matches earlier output, or only after a cursor") {
  Connected c;
  const std::string id = start_in_background(c.server, "echo ready 1; while read x; do echo ready $x; done");
  const json first = check(c.server, id, {{"waitFor", {{"pattern", "ready (\\d)"}}}});
  CHECK(field(fields_of(first), "happened") == "pattern");
  CHECK(field(fields_of(first), "matchedLine") == "ready 1");
  CHECK(text_of(first).find("Matched line: ready 1") != std::string::npos);
  const json waits = {{"waitFor", {{"pattern", "ready"}, {"input", false}}},
                      {"since", field(fields_of(first), "cursor")},
                      {"timeout", 0.5}};
  CHECK(field(fields_of(check(c.server, id, waits)), "happened") == "timeout");
  c.server.call("send_input", {{"processId", id}, {"input", "2"}});
  CHECK(field(fields_of(check(c.server, id, waits)), "matchedLine") == "ready 2");
}

TEST_CASE("waiting: the reply contains the awaited line, however early it is") {
  Connected c;
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    // Takes a little longer each time.
    const std::string id =
        start_in_background(c.server, fmt::format("for i in $(seq {}); do :; done; echo ready; sleep 60", i * 20));
    const json told = check(c.server, id, {{"waitFor", {{"pattern", "ready"}}}});
    REQUIRE(field(fields_of(told), "happened") == "pattern");
    REQUIRE(field(fields_of(told), "stdout") == "ready\n");
    control(c.server, id, "kill");
  }
}

TEST_CASE("waiting: a pattern matches the output of a finished process") {
  Connected c;
  const std::string id = field(fields_of(c.server.execute("seq 100000; echo needle; seq 100000")), "processId");
  const json found = check(c.server, id, {{"waitFor", {{"pattern", "needle"}}}, {"tail", 1}});
  CHECK(field(fields_of(found), "happened") == "pattern");
  CHECK(field(fields_of(found), "exitCode") == 0);
  const json missed = check(c.server, id, {{"waitFor", {{"pattern", "haystack"}}}, {"tail", 1}});
  CHECK(field(fields_of(missed), "happened") == "exit");
}

TEST_CASE("waiting: a line within a flood of output is found") {
  Connected c;
  const std::string id = start_in_background(
      c.server, "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo needle; while :; do echo hay; done");
  const json found = check(c.server, id, {{"waitFor", {{"pattern", "^needle$"}}}, {"tail", 1}, {"timeout", 30}});
  CHECK(field(fields_of(found), "happened") == "pattern");
  control(c.server, id, "kill");
}

TEST_CASE("waiting: many waits on one process are answered independently") {
  Connected c;
  const std::string id = start_in_background(c.server, "read x; echo first; read x; echo second; read x");
  const auto wait_for = [&](const json& what) {
    return c.server.start_call("check_process", {{"processId", id}, {"waitFor", what}, {"timeout", 30}});
  };
  const int first = wait_for({{"pattern", "first"}, {"input", false}});
  const int second = wait_for({{"pattern", "second"}, {"input", false}});
  const int end = wait_for({{"exit", true}});
  const auto answer = [&](int call) {
    return field(fields_of(field(c.server.receive_answer(call), "result")), "happened");
  };
  c.server.call("send_input", {{"processId", id}, {"input", "1"}});
  CHECK(answer(first) == "pattern");
  c.server.call("send_input", {{"processId", id}, {"input", "2"}});
  CHECK(answer(second) == "pattern");
  c.server.call("send_input", {{"processId", id}, {"input", "3"}});
  CHECK(answer(end) == "exit");
}

TEST_CASE("waiting: twenty waits over two servers all get one line") {
  Connected c;
  Server other({"-c", c.container.name()});
  other.initialize();
  const std::string id = start_in_background(c.server, "read x; echo here it is; read x");
  const json awaited = {{"pattern", "^here it is$"}, {"input", false}};
  std::vector<std::pair<Server*, int>> calls;
  for (int i = 0; i < 10; ++i) {
    for (Server* server : {&c.server, &other}) {
      calls.emplace_back(
          server, server->start_call("check_process", {{"processId", id}, {"waitFor", awaited}, {"timeout", 30}}));
    }
  }
  c.server.call("send_input", {{"processId", id}, {"input", "go"}});
  for (const auto& [server, call] : calls) {
    const json result = field(server->receive_answer(call), "result");
    CAPTURE(result.dump());
    CHECK(field(fields_of(result), "matchedLine") == "here it is");
  }
}

TEST_CASE("waiting: time of a paused container does not count as silence") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 600");
  CHECK(field(fields_of(check(c.server, id)), "idleMs").get<int>() < 5000);
  run_ok({"docker", "pause", c.container.name()});
  CHECK(c.server.stays_silent(seconds(9)));
  run_ok({"docker", "unpause", c.container.name()});
  const json paused = check(c.server, id, {{"waitFor", {{"idle", 8}}}, {"timeout", 0.2}});
  CHECK(field(fields_of(paused), "happened") == "timeout");
  CHECK(field(fields_of(paused), "idleMs").get<int>() < 8000);
  CHECK(field(fields_of(check(c.server, id, {{"waitFor", {{"idle", 8}}}, {"timeout", 30}})), "happened") == "idle");
}

TEST_CASE("waiting: a wait reports heartbeats") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 60");
  const int call =
      c.server.start_call("check_process", {{"processId", id}, {"waitFor", {{"pattern", "x"}}}, {"timeout", 5}},
                          {{"progressToken", "beat"}});
  const json answer = c.server.receive_answer(call);
  CHECK(field(fields_of(field(answer, "result")), "happened") == "timeout");
  CHECK(c.server.seen.size() >= 2);
}

TEST_CASE("waiting: an invalid condition is rejected with the reason") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 60");
  const auto code_for = [&](const json& wait_for) {
    return field(error_of(check(c.server, id, {{"waitFor", wait_for}})), "code").get<std::string>();
  };
  CHECK(code_for({{"pattern", "(unclosed"}}) == "bad_pattern");
  CHECK(code_for({{"pattern", 5}}) == "bad_arguments");
  CHECK(code_for({{"port", 0}}) == "bad_arguments");
  CHECK(code_for({{"port", 70000}}) == "bad_arguments");
  CHECK(code_for({{"idle", -1}}) == "bad_arguments");
  CHECK(code_for("exit") == "bad_arguments");
  const json ignored = check(c.server, id, {{"waitFor", {{"moon", "full"}}}, {"timeout", 0}});
  CHECK(text_of(ignored).find("waitFor.moon") != std::string::npos);
}

TEST_CASE("waiting: a wait includes a server that its command left running") {
  Connected c;
  const json started = c.server.execute("(sleep 0.5; exec python3 -m http.server 8124 >/dev/null 2>&1) &");
  CHECK(field(fields_of(started), "childrenRunning") == true);
  const json open =
      check(c.server, field(fields_of(started), "processId"), {{"waitFor", {{"port", 8124}}}, {"timeout", 20}});
  CHECK(field(fields_of(open), "happened") == "port");
}

TEST_CASE("waiting: a search in stored output shows only the matches") {
  Connected c;
  const std::string id =
      field(fields_of(c.server.execute("seq 1 200000; echo 'Error: no luck' >&2; seq 1 10")), "processId");
  const json found =
      check(c.server, id, {{"grep", {{"pattern", "^(199999|ERROR)"}, {"context", 1}, {"ignoreCase", true}}}});
  CHECK(field(fields_of(found), "stdoutFound") == "199998-199998\n199999:199999\n200000-200000\n");
  CHECK(field(fields_of(found), "stderrFound") == "1:Error: no luck\n");
  CHECK(field(fields_of(found), "matches") == 2);
  const json many = check(c.server, id, {{"grep", {{"pattern", "7"}, {"maxLines", 2}}}});
  CHECK(field(fields_of(many), "stdoutFound") == "7:7\n17:17\n");
  CHECK(text_of(many).find(fmt::format("{} lines match, 2 are shown", field(fields_of(many), "matches").get<int>())) !=
        std::string::npos);
  const std::string bounded = text_of(check(c.server, id, {{"grep", {{"pattern", "9"}, {"maxLines", 10'000}}}}));
  CHECK(bounded.size() <= 10'000);
  CHECK(bounded.find("lines match, only the first are shown; narrow the pattern or raise maxOutput") !=
        std::string::npos);
  const json raised = check(c.server, id, {{"grep", {{"pattern", "9"}, {"maxLines", 2'000}}}, {"maxOutput", 50'000}});
  CHECK(text_of(raised).size() > 10'000);
  CHECK(field(fields_of(check(c.server, id, {{"grep", "nowhere"}})), "matches") == 0);
  CHECK(field(error_of(check(c.server, id, {{"grep", "("}})), "code") == "bad_pattern");
  CHECK(field(error_of(check(c.server, id, {{"grep", 5}})), "code") == "bad_arguments");
}
