#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "support/connected.hpp"

using namespace dockbridge;
using test::Connected;
using test::control;
using test::error_of;
using test::field;
using test::fields_of;
using test::json;
using test::Server;
using test::text_of;

namespace {

json in_shell(Server& server, const std::string& command, json more = json::object()) {
  more.emplace("shell", "main");
  return server.execute(command, std::move(more));
}

struct Shell : Connected {
  explicit Shell(const std::string& image = "dockbridge-test:slim", const std::vector<std::string>& arguments = {})
      : Connected({"--init"}, image, with_structure(arguments)) {}

  static std::vector<std::string> with_structure(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--structured", "on"});
    return arguments;
  }
  json run(const std::string& command, json more = json::object()) {
    return in_shell(server, command, std::move(more));
  }
  std::string text(const std::string& command, json more = json::object()) {
    return text_of(run(command, std::move(more)));
  }
};

/// The tests of every image with a shell.
void check_state_and_errors(Shell& shell) {
  CHECK(shell.text("cd /tmp; x=5; f() { echo f $x; }; alias hi='echo hi'; set -f") ==
        "Exit code: 0 (no output)\n[new shell main: p1]");
  CHECK(shell.text("pwd; f; echo /*") == "/tmp\nf 5\n/*\n\nExit code: 0");
  CHECK(shell.text("hi; echo err >&2; (exit 9)") == "hi\n[stderr]\nerr\n\nExit code: 9");
  CHECK(shell.text("echo $?") == "9\n\nExit code: 0");
  const json unclosed = shell.run("echo 'unclosed");
  CHECK(field(fields_of(unclosed), "exitCode") == 2);
  CHECK(field(fields_of(unclosed), "stdout") == "");
  CHECK(shell.text("pwd; echo $A", {{"cwd", "/bin"}, {"env", {{"A", "it's"}}}}) == "/bin\nit's\n\nExit code: 0");
  CHECK(shell.text("echo ran", {{"cwd", "/nowhere"}}).find("The command was not run") != std::string::npos);
  CHECK(shell.text("pwd; echo $A $x") == "/bin\nit's 5\n\nExit code: 0");
  CHECK(text_of(shell.server.execute("echo $x")) == "Exit code: 0 (no output)");
  CHECK(shell.text("echo $x", {{"shell", "other"}}).find("[new shell other: p3]") != std::string::npos);

  CHECK(shell.text("echo bye; exit 3") == "bye\n\nExit code: 3. Shell main has ended; its state is lost.");
  CHECK(shell.text("echo x=$x") ==
        "[shell main ended: Exit code: 3; its state is lost. This ran in a new one, p4]\nx=\n\nExit code: 0");
  CHECK(shell.text("exec sh -c 'exit 4'").starts_with("Exit code: 4 (no output). Shell main has ended"));
  CHECK(shell.text("set -e; false").starts_with("[shell main ended: Exit code: 4;"));
  CHECK(shell.text("true").starts_with("[shell main ended: Exit code: 1;"));
}

}  // namespace

TEST_CASE("shell: the state is kept between calls") {
  Shell shell;
  check_state_and_errors(shell);
  CHECK(shell.text("nonexistent") == "[stderr]\nbash: line 1: nonexistent: command not found\n\nExit code: 127");
}

#ifndef __SANITIZE_ADDRESS__  // the sanitized agent needs the glibc of its image
TEST_CASE("shell: an image with only a static sh keeps the state, too") {
  Shell shell("dockbridge-test:sh-only");
  check_state_and_errors(shell);
}

TEST_CASE("shell: a static sh ends after the idle limit") {
  Shell shell("dockbridge-test:sh-only", {"--session-idle-limit", "1"});
  (void)shell.text("x=1");
  std::this_thread::sleep_for(seconds(2));
  CHECK(shell.text("echo x=$x").starts_with("[shell main ended because it was not used"));
}
#endif

TEST_CASE("shell: arguments that belong to a process are rejected") {
  Shell shell;
  for (const json& more : {json{{"tty", true}}, json{{"user", "root"}}, json{{"background", true}}, json{{"stdin", ""}},
                           json{{"maxRuntime", 5}}, json{{"nice", 5}}, json{{"outputLimit", 100}},
                           json{{"env", {{"a.b", "1"}}}}, json{{"shell", "a b"}}, json{{"waitFor", {{"port", 80}}}}}) {
    CAPTURE(more.dump());
    CHECK(field(error_of(shell.run("echo ran", more)), "code") == "bad_arguments");
  }
  CHECK(shell.text("echo ok", {{"tty", false}, {"background", false}}).starts_with("ok\n"));
}

TEST_CASE("shell: a silent command is left running, and check_process has its exit code") {
  Shell shell;
  (void)shell.text("x=1");
  const json left = shell.run("sleep 1.5; echo late; (exit 4)", {{"timeout", 0.3}});
  CHECK(text_of(left) == "p1 is still running after 0.3 s. check_process waits for it.");
  CHECK(field(fields_of(left), "status") == "running");
  const json busy = error_of(shell.run("echo second"));
  CHECK(field(busy, "code") == "session_busy");
  CHECK(field(busy, "message") == "Shell main still runs a command: `sleep 1.5; echo late; (exit 4)`");
  const std::string waited =
      text_of(shell.server.call("check_process", {{"processId", "p1"}, {"timeout", 20}}, seconds(30)));
  CAPTURE(waited);
  CHECK(waited.ends_with("late\nExit code: 4"));
  CHECK(shell.text("echo $? $x") == "4 1\n\nExit code: 0");
}

TEST_CASE("shell: the next reply has the end of a command that nobody waited for") {
  Shell shell;
  (void)shell.text("sleep 0.5; echo late; (exit 4)", {{"timeout", 0.1}});
  std::this_thread::sleep_for(seconds(1));
  CHECK(shell.text("echo next") ==
        "[the earlier command ended, exit code: 4; its output comes first]\nlate\nnext\n\nExit code: 0");
}

TEST_CASE("shell: a command reads the stdin of its process") {
  Shell shell;
  CHECK(shell.text("read x; echo \"got $x\"; false").starts_with("p1 waits for input."));
  const json sent = shell.server.call("send_input", {{"processId", "p1"}, {"input", "hello"}});
  CHECK(text_of(sent).starts_with("got hello\nExit code: 1"));
  CHECK(shell.text("echo $x") == "hello\n\nExit code: 0");
}

TEST_CASE("shell: background jobs hold nothing up") {
  Shell shell;
  CHECK(shell.text("sleep 100 & job=$!").starts_with("Exit code: 0 (no output)"));
  CHECK(shell.text("jobs | grep -c Running; kill $job; wait $job") == "1\n\nExit code: 143");
}

TEST_CASE("shell: an interrupt keeps the state") {
  Shell shell;
  (void)shell.text("x=1");
  for (const char* command : {"while :; do sleep 1; done", "while :; do :; done", "read y"}) {
    CAPTURE(command);
    (void)shell.text(command, {{"timeout", 0.3}});
    const std::string text = text_of(control(shell.server, "p1", "interrupt"));
    CHECK(text.find("was interrupted. The state is kept.") != std::string::npos);
    CHECK(shell.text("echo $x").ends_with("1\n\nExit code: 0"));
  }
}

TEST_CASE("shell: cancelling a call interrupts its command and keeps the shell") {
  Shell shell;
  (void)shell.text("x=1");
  const int id =
      shell.server.start_call("execute_command", {{"command", "sleep 100"}, {"shell", "main"}, {"rationale", "test"}});
  std::this_thread::sleep_for(milliseconds(500));
  test::cancel(shell.server, id);
  std::string text;
  for (int attempt = 0; attempt < 50 && !text.ends_with("1\n\nExit code: 0"); ++attempt) {
    std::this_thread::sleep_for(milliseconds(100));
    text = shell.text("echo $x");
  }
  CHECK(text.ends_with("1\n\nExit code: 0"));
}

TEST_CASE("shell: a killed shell is replaced, and the reply says why") {
  Shell shell;
  CHECK(shell.text("kill -9 $$").starts_with("Killed by signal 9 (SIGKILL) (no output). Shell main has ended"));
  CHECK(shell.text("echo ok").starts_with("[shell main ended: Killed by signal 9 (SIGKILL); its state is lost."));
}

TEST_CASE("shell: bash ends after the idle limit") {
  Shell shell("dockbridge-test:slim", {"--session-idle-limit", "1"});
  (void)shell.text("x=1");
  std::this_thread::sleep_for(seconds(2));
  CHECK(shell.text("echo x=$x").starts_with("[shell main ended because it was not used"));
}

TEST_CASE("shell: kill -9 of the server leaves the command, and the next server delivers its result") {
  Shell shell;
  (void)shell.text("x=1");
  const auto arguments = shell.with_name({"--structured", "on"});
  {
    Server second(arguments);
    second.initialize();
    (void)second.start_call(
        "execute_command",
        {{"command", "echo begun >/tmp/begun; sleep 1; echo late; x=2"}, {"shell", "main"}, {"rationale", "test"}});
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (text_of(shell.server.execute("cat /tmp/begun 2>&1")).starts_with("begun")) {
        break;
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
  }  // killed
  CHECK(field(error_of(shell.run("echo early")), "message").get<std::string>().find("echo begun") != std::string::npos);
  Server third(arguments);
  third.initialize();
  const std::string waited = text_of(third.call("check_process", {{"processId", "p1"}, {"timeout", 20}}, seconds(30)));
  CHECK(waited.ends_with("late\nExit code: 0"));
  CHECK(text_of(in_shell(third, "echo $x")) == "2\n\nExit code: 0");
}

TEST_CASE("shell: two servers use the same shell, and every command runs once") {
  Shell shell;
  Server other(shell.with_name({"--structured", "on"}));
  other.initialize();
  (void)shell.text("n=0; m=0");
  int done = 1;
  for (int round = 0; round < 30; ++round) {
    const json call = {{"command", "n=$((n+1))"}, {"shell", "main"}, {"rationale", "test"}};
    const int first = shell.server.start_call("execute_command", call);
    const int second = other.start_call("execute_command", call);
    for (const json& answer : {shell.server.receive_answer(first), other.receive_answer(second)}) {
      const json& result = field(answer, "result");
      if (result.value("isError", false)) {
        CHECK(field(error_of(result), "code") == "session_busy");
      } else {
        ++done;
      }
    }
  }
  CHECK(shell.text("echo $n").find(std::to_string(done - 1) + "\n\nExit code: 0") != std::string::npos);
}

TEST_CASE("shell: a restart of the container loses the state, and says so") {
  Shell shell;
  (void)shell.text("x=1");
  (void)test::run_ok({"docker", "restart", "--time", "0", shell.container.name()});
  const json lost = error_of(shell.run("echo x=$x"));
  CHECK(field(lost, "code") == "session_lost");
  CHECK(shell.text("echo x=$x").starts_with("x=\n"));
}
