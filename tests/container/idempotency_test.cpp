#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <random>
#include <thread>

#include "cli/bridge.hpp"
#include "mcp/once.hpp"
#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/full.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

json call_once(Server& server, const std::string& key, const std::string& tool, const json& arguments) {
  return field(server.receive_answer(server.start_call(tool, arguments, with_key(key)), seconds(60)), "result");
}

json execute_once(Server& server, const std::string& key, const std::string& command) {
  return call_once(server, key, "execute_command", {{"command", command}});
}

json send_once(Server& server, const std::string& key, const std::string& process, json more) {
  more["processId"] = process;
  return call_once(server, key, "send_input", more);
}

/// Facts of a reply that must be the same in every repetition.
json essence(const json& result) {
  json told = {{"isError", field(result, "isError")}};
  for (const char* name : {"processId", "status", "exitCode", "stdout", "stderr", "pid", "accepted", "startedAt"}) {
    told[name] = fields_of(result).value(name, json());
  }
  return told;
}

/// A server that is killed instead of stopped.
class Mortal {
 public:
  explicit Mortal(const Container& container) : server({"-c", container.name()}) { server.initialize(); }
  void kill() {
    server.signal(SIGKILL);
    server.wait_for_exit();
  }
  Server server;
};

/// Imitates a server that is killed during a keyed send_input: it sends the input and its end, and nothing else.
void give_input_and_end(const Container& container, const std::string& key, const std::string& process, json more) {
  more.update({{"processId", process}, {"rationale", "a test"}});
  const auto mark = mcp::once_mark("local", key, "send_input" + more.dump());
  cli::Options options;
  options.container.name = container.name();
  Log log(-1, LogLevel::off, LogFormat::text);
  cli::Bridge bridge(options, log);
  const std::string input = field(more, "input");
  const auto taken =
      bridge.sandbox().control().send_input(process, input, true, sandbox::Once{mark.key, mark.call, 0, {0, 0}});
  REQUIRE(taken);
  CHECK(taken->count == input.size());
}

/// Command that appends a line each time it runs, and runs until it is released.
const std::string k_slow =
    "echo ran >> /app/runs; echo started; until [ -e /app/go ]; do sleep 0.05; done; echo done; exit 3";

}  // namespace

TEST_CASE("key: a command runs once, even if its server is killed") {
  const Container container("dockbridge-test:slim", {"--init"});
  {
    Mortal first(container);
    first.server.start_call("execute_command", {{"command", k_slow}}, with_key("build 7"));
    eventually("the command runs", [&] { return container.sh("cat /app/runs 2>&1 || true") == "ran"; });
    first.kill();
  }
  Mortal second(container);
  const int joined = second.server.start_call("execute_command", {{"command", k_slow}}, with_key("build 7"));
  const json listed = field(fields_of(second.server.call("check_process", json::object())), "processes");
  CHECK(container.sh("touch /app/go") == "");
  const json answer = field(second.server.receive_answer(joined), "result");
  CAPTURE(answer.dump());
  CHECK(field(fields_of(answer), "stdout") == "started\ndone\n");
  CHECK(field(fields_of(answer), "exitCode") == 3);
  REQUIRE(listed.size() == 1);
  CHECK(field(fields_of(answer), "processId") == field(listed, 0, "processId"));
  second.kill();

  Mortal third(container);
  CHECK(essence(execute_once(third.server, "build 7", k_slow)) == essence(answer));
  CHECK(container.sh("cat /app/runs") == "ran");
  CHECK(field(fields_of(execute_once(third.server, "build 8", k_slow)), "processId") !=
        field(fields_of(answer), "processId"));
  CHECK(container.sh("cat /app/runs") == "ran\nran");
}

TEST_CASE("key: reuse for another command is rejected, also after a restart") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  CHECK(field(fields_of(execute_once(first.server, "k", "echo one")), "stdout") == "one\n");
  first.kill();
  Mortal second(container);
  CHECK(field(error_of(execute_once(second.server, "k", "touch /app/other")), "code") == "idempotency_conflict");
  CHECK(container.sh("ls /app") == "");
  CHECK(field(fields_of(execute_once(second.server, "k", "echo one")), "stdout") == "one\n");
}

TEST_CASE("key: concurrent equal calls of several servers start one process") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::vector<std::unique_ptr<Mortal>> servers;
  for (int i = 0; i < 4; ++i) {
    servers.push_back(std::make_unique<Mortal>(container));
    servers.back()->server.execute("true");
  }
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    const std::string command = fmt::format("echo ran >> /app/runs{0}; sleep 0.1; echo {0}", round);
    std::vector<int> calls;
    for (const auto& one : servers) {
      calls.push_back(
          one->server.start_call("execute_command", {{"command", command}}, with_key(fmt::format("k{}", round))));
    }
    std::vector<json> answers;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      answers.push_back(essence(field(servers[i]->server.receive_answer(calls[i]), "result")));
      CHECK(answers[i] == answers[0]);
    }
    CHECK(field(answers[0], "stdout") == fmt::format("{}\n", round));
    CHECK(container.sh(fmt::format("cat /app/runs{}", round)) == "ran");
  }
}

TEST_CASE("key: a command that failed to start can be repeated") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal only(container);
  const json arguments = {{"command", "pwd"}, {"cwd", "/app/later"}};
  CHECK(field(error_of(call_once(only.server, "k", "execute_command", arguments)), "code") == "bad_cwd");
  CHECK(container.sh("mkdir /app/later") == "");
  CHECK(field(fields_of(call_once(only.server, "k", "execute_command", arguments)), "stdout") == "/app/later\n");
}

TEST_CASE("key: valid over a container restart; a lost process is reported") {
  const Container container("dockbridge-test:slim", {"--init"});
  const std::string command = "echo ran | tee -a /app/runs";
  Mortal first(container);
  const json answer = execute_once(first.server, "k", command);
  first.kill();
  run_ok({"docker", "restart", "--time", "0", container.name()});
  {
    Mortal second(container);
    CHECK(essence(execute_once(second.server, "k", command)) == essence(answer));
    second.server.execute("echo the latest");
  }
  Server third({"-c", container.name(), "--retention-count", "1"});
  third.initialize();
  eventually("the process has expired", [&] {
    const json gone = check(third, field(fields_of(answer), "processId"));
    return field(gone, "isError") == true && field(error_of(gone), "code") == "process_expired";
  });
  CHECK(field(error_of(execute_once(third, "k", command)), "code") == "process_expired");
  CHECK(container.sh("cat /app/runs") == "ran");
}

TEST_CASE("key: input arrives once, over a server kill and the process's end") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  const std::string id = start_in_background(
      first.server, "while read -r x; do echo \"$x\" >> /app/lines; echo \"got $x\"; done; echo over; exit 4");
  const json one = send_once(first.server, "1", id, {{"input", "one"}});
  CHECK(field(fields_of(one), "stdout") == "got one\n");
  CHECK(field(fields_of(one), "accepted") == 4);
  first.kill();

  Mortal second(container);
  CHECK(essence(send_once(second.server, "1", id, {{"input", "one"}})) == essence(one));
  CHECK(field(error_of(send_once(second.server, "1", id, {{"input", "other"}})), "code") == "idempotency_conflict");
  CHECK(field(fields_of(send_once(second.server, "2", id, {{"input", "two"}})), "stdout") == "got two\n");
  const json end = send_once(second.server, "3", id, {{"eof", true}});
  CHECK(field(fields_of(end), "stdout") == "over\n");
  CHECK(field(fields_of(end), "exitCode") == 4);
  second.kill();

  Mortal third(container);
  CHECK(essence(send_once(third.server, "3", id, {{"eof", true}})) == essence(end));
  const json again = send_once(third.server, "1", id, {{"input", "one"}});
  CHECK(field(fields_of(again), "stdout") == "got one\ngot two\nover\n");
  CHECK(field(fields_of(again), "accepted") == 4);
  CHECK(field(error_of(send_once(third.server, "1", id, {{"input", "other"}})), "code") == "idempotency_conflict");
  CHECK(field(error_of(send_once(third.server, "4", id, {{"input", "four"}})), "code") == "process_ended");
  CHECK(container.sh("cat /app/lines") == "one\ntwo");
}

TEST_CASE("key: eof and interrupt are delivered once to a running process") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  const std::string id = start_in_background(
      first.server, "trap 'echo interrupted' INT; cat; echo end of input; while :; do sleep 0.05; done");
  const json end = send_once(first.server, "eof", id, {{"input", "last"}, {"eof", true}});
  CHECK(field(fields_of(check(first.server, id, {{"waitFor", {{"pattern", "end of input"}}}})), "happened") ==
        "pattern");
  send_once(first.server, "int", id, {{"keys", {"ctrl-c"}}});
  CHECK(field(fields_of(check(first.server, id, {{"waitFor", {{"pattern", "interrupted"}}}})), "happened") ==
        "pattern");
  first.kill();

  Mortal second(container);
  const json again = send_once(second.server, "eof", id, {{"input", "last"}, {"eof", true}});
  CHECK(field(again, "isError") == false);
  CHECK(field(fields_of(again), "accepted") == 5);
  CHECK(field(send_once(second.server, "int", id, {{"keys", {"ctrl-c"}}}), "isError") == false);
  CHECK(field(error_of(send_once(second.server, "new", id, {{"input", "more"}})), "code") == "stdin_closed");
  CHECK(field(fields_of(check(second.server, id)), "stdout") == "last\nend of input\ninterrupted\n");
  control(second.server, id, "kill");
}

TEST_CASE("key: a call interrupted between eof and interrupt is completed") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  const std::string id = start_in_background(
      first.server,
      "trap 'echo interrupted' INT; cat; echo end of input; until [ -e /app/go ]; do sleep 0.05; done; echo done");
  const json all = {{"input", "last\n"}, {"autoNewline", false}, {"eof", true}, {"keys", {"ctrl-c"}}};
  give_input_and_end(container, "k", id, all);
  CHECK(field(fields_of(check(first.server, id, {{"waitFor", {{"pattern", "end of input"}}}})), "happened") ==
        "pattern");

  const json rest = send_once(first.server, "k", id, all);
  CAPTURE(rest.dump());
  CHECK(field(rest, "isError") == false);
  CHECK(field(fields_of(rest), "accepted") == 5);
  CHECK(field(fields_of(check(first.server, id, {{"waitFor", {{"pattern", "interrupted"}}}})), "happened") ==
        "pattern");
  first.kill();

  Mortal second(container);
  CHECK(field(fields_of(send_once(second.server, "k", id, all)), "accepted") == 5);
  CHECK(container.sh("touch /app/go") == "");
  CHECK(field(fields_of(check(second.server, id, {{"timeout", 20}})), "stdout") ==
        "last\nend of input\ninterrupted\ndone\n");
}

TEST_CASE("key: an interrupt after the process's end is rejected every time") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  // Nothing is left of the first process; a child is left of the second.
  for (const std::string command : {"read -r x; exit 3", "sleep 600 & read -r x; exit 3"}) {
    CAPTURE(command);
    const std::string id = start_in_background(first.server, command);
    first.server.call("send_input", {{"processId", id}, {"input", "go"}});
    CHECK(field(fields_of(check(first.server, id, {{"timeout", 20}})), "exitCode") == 3);
    CHECK(field(error_of(send_once(first.server, "late " + id, id, {{"keys", {"ctrl-c"}}})), "code") ==
          "process_ended");
    CHECK(field(error_of(send_once(first.server, "late " + id, id, {{"keys", {"ctrl-c"}}})), "code") ==
          "process_ended");
    Mortal second(container);
    CHECK(field(error_of(send_once(second.server, "late " + id, id, {{"keys", {"ctrl-c"}}})), "code") ==
          "process_ended");
  }
}

TEST_CASE("key: a repeated interrupt that ended the process has the same reply") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  for (const std::string left : {"", "sleep 600 & "}) {
    CAPTURE(left);
    const std::string id = start_in_background(
        first.server, left + "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done");
    CHECK(field(fields_of(check(first.server, id, {{"waitFor", {{"pattern", "ready"}}}})), "happened") == "pattern");
    CHECK(field(send_once(first.server, "int " + id, id, {{"keys", {"ctrl-c"}}}), "isError") == false);
    CHECK(field(fields_of(check(first.server, id, {{"timeout", 20}})), "exitCode") == 5);

    Mortal second(container);
    const json again = send_once(second.server, "int " + id, id, {{"keys", {"ctrl-c"}}});
    CAPTURE(again.dump());
    CHECK(field(again, "isError") == false);
    CHECK(field(fields_of(again), "accepted") == 0);
    CHECK(field(fields_of(again), "exitCode") == 5);
    CHECK(field(fields_of(again), "stdout") == "interrupted\n");
    CHECK(field(error_of(send_once(second.server, "new " + id, id, {{"keys", {"ctrl-c"}}})), "code") ==
          "process_ended");
  }
}

TEST_CASE("key: keys after partly accepted input are never sent") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  const std::string id = start_in_background(
      first.server, "trap 'echo interrupted' INT; until [ -e /app/go ]; do sleep 0.05; done; wc -c");
  const json all = {{"input", std::string(2'000'000, 'x')}, {"keys", {"ctrl-c"}}};
  const json part = send_once(first.server, "k", id, all);
  const std::size_t accepted = field(fields_of(part), "accepted");
  CHECK(accepted > 0);
  CHECK(accepted < 2'000'000);
  CHECK(text_of(part).find(fmt::format("only {} of 2000000 bytes were accepted", accepted)) != std::string::npos);
  CHECK(text_of(part).find("Send the rest later") != std::string::npos);
  CHECK(field(fields_of(part), "status") == "running");

  Mortal second(container);
  CHECK(essence(send_once(second.server, "k", id, all)) == essence(part));
  CHECK(container.sh("touch /app/go") == "");
  CHECK(field(fields_of(check(second.server, id, {{"waitFor", {{"input", true}}}, {"timeout", 20}})), "happened") ==
        "input");
  Mortal third(container);
  CHECK(essence(send_once(third.server, "k", id, all)) == essence(part));
  third.server.call("send_input", {{"processId", id}, {"eof", true}});
  CHECK(field(fields_of(check(third.server, id, {{"timeout", 20}})), "stdout") == fmt::format("{}\n", accepted));
}

TEST_CASE("key: keys on a terminal are sent once") {
  const Container container("dockbridge-test:slim", {"--init"});
  Mortal first(container);
  const std::string id =
      start_in_background(first.server, "read -r x; read -r y; echo \"$x $y\" > /app/typed", {{"tty", true}});
  const json typed = {{"input", "a"}, {"keys", {"b", "enter"}}};
  send_once(first.server, "1", id, typed);
  first.kill();
  Mortal second(container);
  CHECK(field(send_once(second.server, "1", id, typed), "isError") == false);
  CHECK(field(send_once(second.server, "2", id, typed), "isError") == false);
  CHECK(field(fields_of(check(second.server, id, {{"timeout", 20}})), "status") == "completed");
  CHECK(container.sh("cat /app/typed") == "ab ab");
  second.kill();
  Mortal third(container);
  CHECK(field(send_once(third.server, "2", id, typed), "isError") == false);
}

TEST_CASE("key: repeated calls act once under random kills") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::minstd_rand random(5);
  const std::string piece(100'000, 'x');
  auto server = std::make_unique<Mortal>(container);
  const std::string id = start_in_background(server->server, "cat > /app/lines; echo end");
  std::string sent;
  std::string runs;
  const int rounds = full_run() ? 200 : 24;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const std::string key = fmt::format("k{}", round);
    const bool is_input = round % 2 == 0;
    const std::string line = fmt::format("{} {}", round, piece);
    const std::string tool = is_input ? "send_input" : "execute_command";
    const json arguments = is_input ? json{{"processId", id}, {"input", line}}
                                    : json{{"command", fmt::format("echo {} >> /app/runs", round)}};
    (is_input ? sent : runs) += (is_input ? line : std::to_string(round)) + "\n";
    server->server.execute("true");
    const auto sessions = container.pids_of(k_session);
    const int call = server->server.start_call(tool, arguments, with_key(key));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));  // at any moment of the call
    if (round % 4 < 2) {
      server->kill();
      server = std::make_unique<Mortal>(container);
    } else {
      for (const int pid : sessions) {
        ::kill(pid, SIGKILL);
      }
      server->server.receive_answer(call, seconds(60));
    }
    json answer = call_once(server->server, key, tool, arguments);
    CAPTURE(answer.dump().substr(0, 2000));
    CHECK(field(answer, "isError") == false);
  }
  CHECK(field(fields_of(server->server.call("send_input", {{"processId", id}, {"eof", true}})), "stdout") == "end\n");
  CHECK(container.sh("cat /app/runs") + "\n" == runs);
  CHECK(container.sh("cat /app/lines") + "\n" == sent);
}
