#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <set>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Every test here runs over the Engine API and over the docker command.
void on_both_channels(const std::function<void(Server& server, const Container& container)>& body,
                      const std::string& image = "dockbridge-test:slim") {
  const Container container(image, {"--init"});
  for (const char* via : {"engine", "exec"}) {
    CAPTURE(via);
    Server server({"-c", container.name(), "--via", via, "--inactivity-timeout", "2"});
    server.initialize();
    body(server, container);
  }
}

}  // namespace

TEST_CASE("commands: output and exit code have the documented form") {
  on_both_channels([](Server& server, const Container&) {
    const json both = server.execute("echo out; echo err >&2; exit 3");
    CHECK(text_of(both) == "out\n[stderr]\nerr\n\nExit code: 3");
    CHECK(field(both, "isError") == false);
    CHECK(field(fields_of(both), "stdout") == "out\n");
    CHECK(field(fields_of(both), "stderr") == "err\n");
    CHECK(field(fields_of(both), "exitCode") == 3);
    CHECK(text_of(server.execute("true")) == "Exit code: 0 (no output)");
    CHECK(text_of(server.execute("echo hello")) == "hello\n\nExit code: 0");
    CHECK(text_of(server.execute("echo oops >&2; false")) == "[stderr]\noops\n\nExit code: 1");
  });
}

TEST_CASE("commands: every exit code and every signal is exact") {
  on_both_channels([](Server& server, const Container&) {
    for (int code = 0; code <= 255; code += 15) {
      CHECK(field(fields_of(server.execute(fmt::format("exit {}", code))), "exitCode") == code);
    }
    const json killed = server.execute("kill -KILL $$");
    CHECK(field(fields_of(killed), "signal") == "SIGKILL");
    CHECK_FALSE(fields_of(killed).contains("exitCode"));
    CHECK(text_of(killed) == "Killed by signal 9 (SIGKILL) (no output)");
    CHECK(field(fields_of(server.execute("kill -TERM $$")), "signal") == "SIGTERM");
    CHECK(field(fields_of(server.execute("bash -c 'kill -SEGV $$'; exit $?")), "exitCode") == 139);
  });
}

TEST_CASE("commands: quotes, heredocs and backslashes behave as in a script") {
  on_both_channels([](Server& server, const Container&) {
    const auto out = [&](const std::string& command) { return field(fields_of(server.execute(command)), "stdout"); };
    CHECK(out(R"sh(printf '%s\n' "it's" 'a "quoted" $HOME' \\ "$((1+1))")sh") == "it's\na \"quoted\" $HOME\n\\\n2\n");
    CHECK(out("cat <<'END'\n$not `expanded` \"at\" 'all'\nEND\n") == "$not `expanded` \"at\" 'all'\n");
    CHECK(out("echo a # a trailing comment") == "a\n");
    CHECK(out("for i in 1 2 3; do\n  echo $i\ndone | tac") == "3\n2\n1\n");
    CHECK(out("echo 'ünïcödé 漢字 🎉'") == "ünïcödé 漢字 🎉\n");
    CHECK(out("echo one; echo two &\nwait") == "one\ntwo\n");
    CHECK(out("[[ abc == a* ]] && echo this is bash") == "this is bash\n");
    const json unclosed = server.execute("echo 'unclosed");
    CHECK(field(fields_of(unclosed), "exitCode") == 2);
    CHECK(field(fields_of(unclosed), "stderr").get<std::string>().find("unexpected EOF") != std::string::npos);
  });
}

TEST_CASE("commands: cwd, env and stdin are passed on") {
  on_both_channels([](Server& server, const Container&) {
    CHECK(field(fields_of(server.execute("pwd")), "stdout") == "/app\n");
    CHECK(field(fields_of(server.execute("pwd", {{"cwd", "/usr/lib"}})), "stdout") == "/usr/lib\n");
    server.execute("mkdir -p 'sub dir'");
    CHECK(field(fields_of(server.execute("pwd", {{"cwd", "sub dir"}})), "stdout") == "/app/sub dir\n");
    const json env = {{"A", "x=y 'z'\n"}, {"PATH", "/usr/bin:/bin"}};
    CHECK(field(fields_of(server.execute("printf '%s|%s' \"$A\" \"$PATH\"", {{"env", env}})), "stdout") ==
          "x=y 'z'\n|/usr/bin:/bin");
    CHECK(field(fields_of(server.execute("cat; echo end", {{"stdin", "line\nno newline"}})), "stdout") ==
          "line\nno newlineend\n");
    CHECK(field(fields_of(server.execute("wc -c", {{"stdin", ""}})), "stdout") == "0\n");
    const json big = server.execute("wc -c; sha256sum /dev/null >&2", {{"stdin", std::string(3'000'000, 'x')}});
    CHECK(field(fields_of(big), "stdout") == "3000000\n");
  });
}

TEST_CASE("commands: can run as another user of the container") {
  on_both_channels([](Server& server, const Container&) {
    const auto out = [&](const char* user) {
      return field(fields_of(server.execute("id -u; id -g; echo $HOME $USER", {{"user", user}, {"cwd", "/"}})),
                   "stdout");
    };
    CHECK(out("games") == "5\n60\n/usr/games games\n");
    CHECK(out("4242:4343") == "4242\n4343\n/\n");
    CHECK(out("games:daemon") == "5\n1\n/usr/games games\n");
    CHECK(field(fields_of(server.execute("echo a >/dev/stdout; echo b >/dev/stderr; cat /dev/stdin",
                                         {{"user", "nobody"}, {"cwd", "/"}, {"stdin", "c"}})),
                "stdout") == "a\nc");
    const json nobody = server.execute("true", {{"user", "no-such-user"}});
    CHECK(field(nobody, "isError") == true);
    CHECK(field(fields_of(nobody), "error", "code") == "no_such_user");
  });
}

TEST_CASE("commands: a missing working directory is reported") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.execute("true", {{"cwd", "/no/such/place"}});
    CHECK(field(result, "isError") == true);
    CHECK(field(fields_of(result), "error", "code") == "bad_cwd");
    CHECK(text_of(result).find("/no/such/place") != std::string::npos);
    CHECK(field(fields_of(server.execute("echo still here")), "stdout") == "still here\n");
  });
}

TEST_CASE("commands: a command of 1 MB runs") {
  on_both_channels([](Server& server, const Container&) {
    const std::string command = "echo start; : '" + std::string(1'000'000, 'x') + "'; echo end; exit 7";
    const json result = server.execute(command);
    CHECK(field(fields_of(result), "stdout") == "start\nend\n");
    CHECK(field(fields_of(result), "exitCode") == 7);
  });
}

TEST_CASE("commands: an oversized environment is a clear error") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.execute("true", {{"env", {{"BIG", std::string(200'000, 'x')}}}});
    CHECK(field(result, "isError") == true);
    CHECK(field(fields_of(result), "error", "code") == "cannot_execute");
    CHECK_FALSE(field(fields_of(result), "error", "nextStep").get<std::string>().empty());
  });
}

TEST_CASE("commands: a fast exit loses no output of either stream") {
  on_both_channels([](Server& server, const Container&) {
    for (int i = 0; i < 30; ++i) {
      const json result = server.execute("printf %05000d 7; printf %04000d 8 >&2; exit 1");
      CHECK(field(fields_of(result), "stdout").get<std::string>().size() == 5000);
      CHECK(field(fields_of(result), "stderr").get<std::string>().size() == 4000);
    }
  });
}

TEST_CASE("commands: long output is cut in the middle, and stdoutGaps has the exact range") {
  std::string expected;
  for (int i = 1; i <= 100000; ++i) {
    expected += std::to_string(i) + "\n";
  }
  on_both_channels([&](Server& server, const Container&) {
    const json result = server.execute("seq 1 100000", {{"maxOutput", 2000}});
    const json& fields = fields_of(result);
    const std::string out = field(fields, "stdout");
    const json& gap = field(fields, "stdoutGaps", 0);
    const std::size_t at = field(gap, "at");
    CHECK(field(fields, "stdoutGaps").size() == 1);
    CHECK(field(fields, "stdoutFrom") == 0);
    CHECK(field(fields, "stdoutBytes") == expected.size());
    CHECK(field(fields, "stdoutLeftOut") ==
          field(gap, "to").get<std::size_t>() - field(gap, "from").get<std::size_t>());
    CHECK(field(gap, "notStored") == 0);
    CHECK(at > 0);
    CHECK(out.substr(0, at) == expected.substr(0, field(gap, "from")));
    CHECK(out.substr(at) == expected.substr(field(gap, "to")));
    CHECK(text_of(result).find(" bytes of stdout left out]\n") != std::string::npos);
    CHECK(field(fields, "stderrGaps").empty());

    std::string whole;
    std::string cursor = "0:0";
    while (whole.size() < expected.size()) {
      const json part = check(server, field(fields, "processId"), {{"since", cursor}, {"maxOutput", 100000}});
      CHECK(field(fields_of(part), "stdoutFrom") == whole.size());
      REQUIRE_FALSE(field(fields_of(part), "stdout").get<std::string>().empty());
      whole += field(fields_of(part), "stdout").get<std::string>();
      cursor = field(fields_of(part), "cursor");
    }
    CHECK(whole == expected);
  });
}

TEST_CASE("commands: colours and progress bars are removed unless raw is set") {
  on_both_channels([](Server& server, const Container&) {
    const std::string command = R"(printf '\033[31mred\033[0m\n10%%\r50%%\r100%%\nab\bc\n')";
    CHECK(field(fields_of(server.execute(command)), "stdout") == "red\n100%\nac\n");
    CHECK(field(fields_of(server.execute(command, {{"raw", true}})), "stdout") ==
          "\x1b[31mred\x1b[0m\n10%\r50%\r100%\nab\bc\n");
  });
}

TEST_CASE("commands: repeated lines are folded and counted unless raw is set") {
  on_both_channels([](Server& server, const Container&) {
    const std::string command = "echo begin; for i in $(seq 1000); do echo again; done; echo end";
    const json folded = server.execute(command);
    CHECK(text_of(folded) == "begin\nagain\n[the line above 999 more times]\nend\n\nExit code: 0");
    CHECK(field(fields_of(folded), "stdout").get<std::string>().size() == 6010);
    CHECK(text_of(server.execute(command, {{"raw", true}})).size() > 6010);
  });
}

TEST_CASE("commands: invalid UTF-8 is replaced and counted, characters stay whole") {
  on_both_channels([](Server& server, const Container&) {
    const json binary = server.execute(R"(printf 'a\377\376b\000c')");
    CHECK(field(fields_of(binary), "stdout") == std::string("a\xEF\xBF\xBD\xEF\xBF\xBD"
                                                            "b\0c",
                                                            10));
    CHECK(text_of(binary).find("2 bytes are not UTF-8") != std::string::npos);
    CHECK(field(fields_of(binary), "stdoutReplaced") == 2);
    const json cut = server.execute("for i in $(seq 2000); do printf 漢字; done", {{"maxOutput", 1000}});
    CHECK(field(fields_of(cut), "stdout").get<std::string>().find("\xEF\xBF\xBD") == std::string::npos);
  });
}

TEST_CASE("commands: a silent command continues in the background") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.execute("echo first; sleep 4; echo second; exit 5", {{"maxWaitTime", 1}});
    CHECK(field(fields_of(result), "status") == "running");
    CHECK(field(fields_of(result), "returned") == "quiet");
    CHECK(field(fields_of(result), "stdout") == "first\n");
    const std::string id = short_id_in(text_of(result));
    CHECK(text_of(result).ends_with(id + " is still running: no output for 1 s. check_process waits for it."));

    const json running = check(server, id);
    CHECK(text_of(running).starts_with(id + " is running"));
    const json ended = check(server, id, {{"timeout", 20}, {"since", field(fields_of(result), "cursor")}});
    CHECK(text_of(ended) == id + " ended. Exit code: 5\n\nsecond");
    CHECK(field(fields_of(ended), "exitCode") == 5);
    CHECK(field(fields_of(ended), "stdout") == "second\n");
    CHECK(field(fields_of(check(server, id, {{"tail", 1}})), "stdout") == "second\n");
  });
}

TEST_CASE("commands: a command with steady output is not ended by inactivity") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.execute("for i in 1 2 3 4; do echo $i; sleep 0.7; done", {{"maxWaitTime", 1}});
    CHECK(field(fields_of(result), "status") == "completed");
    CHECK(field(fields_of(result), "stdout") == "1\n2\n3\n4\n");
  });
}

TEST_CASE("commands: a client gets progress or a reply before its timeout") {
  const Container container("dockbridge-test:slim", {"--init"});
  Server server({"-c", container.name(), "--client-timeout", "2"});
  server.initialize();
  const std::string talks = "for i in $(seq 8); do echo $i; sleep 0.5; done";
  const json early = server.execute(talks);
  CHECK(field(fields_of(early), "returned") == "waited_enough");

  const int id = server.start_call("execute_command", {{"command", "sleep 5; echo done"}}, {{"progressToken", "tok"}});
  const json answer = server.receive_answer(id);
  CHECK(field(fields_of(field(answer, "result")), "stdout") == "done\n");
  double last = 0;
  int heartbeats = 0;
  for (const json& message : server.seen) {
    if (message.value("method", "") == "notifications/progress") {
      CHECK(field(message, "params", "progressToken") == "tok");
      CHECK(field(message, "params", "progress").get<double>() > last);
      last = field(message, "params", "progress");
      ++heartbeats;
    }
  }
  CHECK(heartbeats >= 2);
}

TEST_CASE("commands: progress reports output as it arrives") {
  Connected c;
  c.server.execute("mkfifo /tmp/seen1 /tmp/seen2");
  // The command continues only after its last output was reported. It uses a new pipe for each step: the writer may
  // still have the old one open when it is opened again.
  const std::string talk = "echo one; read x </tmp/seen1; echo two >&2; read x </tmp/seen2; echo three";
  double last = 0;
  const auto go_on = [&](const std::string& pipe) {
    run_ok({"docker", "exec", c.container.name(), "sh", "-c", "echo x >/tmp/" + pipe});
  };
  const auto expect_output = [&](const std::string& token, const std::string& word) {
    eventually("output " + word, [&] {
      const json params = c.server.receive().value("params", json::object());
      CHECK(field(params, "progressToken") == token);
      CHECK(field(params, "progress").get<double>() > last);
      last = field(params, "progress");
      return field(params, "message") == word;
    });
  };
  const int running = c.server.start_call("execute_command", {{"command", talk}}, {{"progressToken", "run"}});
  expect_output("run", "one");
  go_on("seen1");
  expect_output("run", "[stderr]\ntwo");
  go_on("seen2");
  CHECK(field(fields_of(field(c.server.receive_answer(running), "result")), "stdout") == "one\nthree\n");

  const std::string id = start_in_background(c.server, talk);
  const json first = check(c.server, id, {{"waitFor", {{"pattern", "one"}}}});
  CHECK(field(fields_of(first), "happened") == "pattern");
  const int waiting =
      c.server.start_call("check_process", {{"processId", id}, {"waitFor", {{"exit", true}}}, {"timeout", 30}},
                          {{"progressToken", "wait"}});
  last = 0;
  go_on("seen1");
  expect_output("wait", "[stderr]\ntwo");  // without the earlier output
  go_on("seen2");
  CHECK(field(fields_of(field(c.server.receive_answer(waiting), "result")), "happened") == "exit");
}

TEST_CASE("send_input: answers a prompt, and eof ends the input") {
  on_both_channels([](Server& server, const Container&) {
    const std::string id = start_in_background(server, "read -p 'name? ' n; echo \"hello $n\"; cat; echo bye");
    const json first = server.call("send_input", {{"processId", id}, {"input", "wörld"}});
    CHECK(field(fields_of(first), "stdout").get<std::string>().find("hello wörld\n") != std::string::npos);
    CHECK(field(fields_of(first), "status") == "running");
    const json second = server.call("send_input", {{"processId", id}, {"input", "x"}, {"autoNewline", false}});
    CHECK(field(fields_of(second), "stdout") == "x");
    const json last = server.call("send_input", {{"processId", id}, {"input", ""}, {"eof", true}});
    CHECK(field(fields_of(last), "stdout") == "bye\n");
    CHECK(field(fields_of(last), "exitCode") == 0);
    const json late = server.call("send_input", {{"processId", id}, {"input", "too late"}});
    CHECK(field(late, "isError") == true);
    CHECK(field(fields_of(late), "error", "code") == "process_ended");
  });
}

TEST_CASE("send_input: a process that does not read accepts a bounded amount") {
  on_both_channels([](Server& server, const Container&) {
    const std::string id = start_in_background(server, "sleep 60");
    const json result = server.call("send_input", {{"processId", id}, {"input", std::string(3'000'000, 'x')}});
    const auto accepted = field(fields_of(result), "accepted").get<std::size_t>();
    CHECK(accepted >= 1'000'000);
    CHECK(accepted < 2'000'000);
    CHECK(text_of(result).find(std::to_string(accepted)) != std::string::npos);
  });
}

TEST_CASE("commands: unknown, foreign and malformed ids are not found") {
  on_both_channels([](Server& server, const Container&) {
    const json malformed = check(server, "../../etc/passwd");
    CHECK(field(malformed, "isError") == true);
    CHECK(field(fields_of(malformed), "error", "code") == "bad_process_id");
    const std::string mine = field(fields_of(server.execute("true")), "processId");
    const std::string generation = mine.substr(0, mine.rfind('_'));
    CHECK(field(fields_of(check(server, generation + "_0000000000000000")), "error", "code") == "no_such_process");
    CHECK(field(fields_of(check(server, "proc_1_0000000000000000")), "error", "code") == "process_gone");
    const json input = server.call("send_input", {{"processId", generation + "_zzzz"}, {"input", "x"}});
    CHECK(field(fields_of(input), "error", "code") == "no_such_process");
  });
}

TEST_CASE("list: shows running processes, then finished ones, newest first") {
  on_both_channels([](Server& server, const Container&) {
    const std::string running = start_in_background(server, "sleep 30 # listed");
    const std::string ended = field(fields_of(server.execute("exit 4")), "processId");
    const json list = field(fields_of(server.call("check_process", json::object())), "processes");
    REQUIRE(list.size() >= 2);
    CHECK(field(list, 0, "processId") == running);
    CHECK(field(list, 0, "status") == "running");
    const auto finished = std::find_if(list.begin(), list.end(),
                                       [](const json& process) { return field(process, "status") == "completed"; });
    REQUIRE(finished != list.end());
    CHECK(field((*finished), "processId") == ended);
    CHECK(field((*finished), "exitCode") == 4);
  });
}

TEST_CASE("commands: a background child does not delay the reply and is reported") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.execute("(sleep 1; echo later) & echo now");
    CHECK(field(fields_of(result), "stdout") == "now\n");
    CHECK(field(fields_of(result), "exitCode") == 0);
    CHECK(field(fields_of(result), "childrenRunning") == true);
    const std::string id = field(fields_of(result), "processId");
    eventually("the child's output is kept too",
               [&] { return field(fields_of(check(server, id)), "stdout") == "now\nlater\n"; });
  });
}

TEST_CASE("commands: an unknown argument is an error, and the command is not run") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.execute("touch /tmp/ran", {{"timeot", 5}});
    CHECK(text_of(result) == "Error: Unknown argument: timeot\nDid you mean timeout?");
    CHECK(field(error_of(result), "code") == "bad_arguments");
    CHECK(field(fields_of(server.execute("ls /tmp/ran")), "exitCode") == 2);
  });
}

TEST_CASE("commands: names that other clients' tools use are accepted") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.call("execute_command", {{"cmd", "pwd"}, {"workdir", "/tmp"}, {"description", "x"}});
    CHECK(text_of(result) == "/tmp\n\nExit code: 0");
  });
}

TEST_CASE("commands: timeout moves a command to the background, in s or ms") {
  on_both_channels([](Server& server, const Container&) {
    const std::string talks = "while :; do echo tick; sleep 0.1; done";
    const json in_seconds = server.execute(talks, {{"timeout", 1}});
    CHECK(field(fields_of(in_seconds), "status") == "running");
    CHECK(text_of(in_seconds).find("is still running after 1 s. check_process waits for it.") != std::string::npos);
    CHECK(text_of(in_seconds).find("milliseconds") == std::string::npos);
    const json in_ms = server.execute(talks, {{"timeout", 1200}});
    CHECK(field(fields_of(in_ms), "status") == "running");
    CHECK(text_of(in_ms).find("Note: timeout was read as milliseconds (1.2 s)") != std::string::npos);
    for (const json& started : {in_seconds, in_ms}) {
      control(server, field(fields_of(started), "processId"), "kill");
    }
  });
}

TEST_CASE("commands: ~ is the home of the user that the command runs as") {
  on_both_channels([](Server& server, const Container&) {
    CHECK(field(fields_of(server.execute("pwd", {{"cwd", "~"}})), "stdout") == "/root\n");
    CHECK(field(fields_of(server.execute("pwd", {{"cwd", "~"}, {"user", "games"}})), "stdout") == "/usr/games\n");
    CHECK(field(server.call("file_write", {{"filePath", "~/note"}, {"content", "x"}}), "isError") == false);
    CHECK(field(fields_of(server.execute("cat ~/note")), "stdout") == "x");
  });
}

TEST_CASE("commands: an empty stdin is /dev/null") {
  on_both_channels([](Server& server, const Container&) {
    CHECK(field(fields_of(server.execute("readlink /proc/self/fd/0; cat", {{"stdin", ""}})), "stdout") ==
          "/dev/null\n");
  });
}

TEST_CASE("commands: a command that reads standard input silently gets a hint") {
  on_both_channels([](Server& server, const Container&) {
    const json result = server.execute("grep needle");
    CHECK(text_of(result).ends_with(
        "waits for input. send_input answers it. grep reads standard input if it gets no path: pass a path, or stdin: "
        "\"\". send_input with eof: true ends it."));
    control(server, field(fields_of(result), "processId"), "kill");
    const json read = server.execute("read line");
    CHECK(text_of(read).ends_with("waits for input. send_input answers it."));
    control(server, field(fields_of(read), "processId"), "kill");
  });
}

TEST_CASE("commands: by default a reply has text and facts, but no fields") {
  const Container container("dockbridge-test:slim", {"--init"});
  Server server({"-c", container.name()}, {{"DOCKBRIDGE_STRUCTURED", "off"}});
  server.initialize();
  const json result = server.execute("echo hi; exit 3");
  CHECK_FALSE(result.contains("structuredContent"));
  CHECK(text_of(result) == "hi\n\nExit code: 3");
  const json& facts = field(result, "_meta", "dockbridge/result");
  CHECK(field(facts, "exitCode") == 3);
  CHECK(field(facts, "status") == "completed");
  CHECK(field(facts, "cursor") == "3:0");
  CHECK(facts.dump().size() <= 500);
  const int id = server.start_call("execute_command", {{"command", "echo hi"}}, {{"dockbridge/structured", true}});
  CHECK(field(server.receive_answer(id), "result", "structuredContent", "stdout") == "hi\n");
  const json listed = server.request("tools/list");
  for (const json& tool : field(listed, "result", "tools")) {
    CHECK_FALSE(tool.contains("outputSchema"));
  }
}

TEST_CASE("commands: replies of a server with few tools name no other") {
  const Container container("dockbridge-test:slim", {"--init"});
  Server server({"-c", container.name(), "--tools", "execute_command,file_read"});
  server.initialize();
  const json running = server.execute("sleep 60", {{"timeout", 0.2}});
  CHECK(text_of(running).find("check_process") == std::string::npos);
  CHECK(text_of(server.execute("seq 100000")).find("check_process") == std::string::npos);
  const json missing = server.call("file_read", {{"filePath", "/no/such"}});
  CHECK(field(error_of(missing), "code") == "no_such_file");
  CHECK(text_of(missing).find("file_ls") == std::string::npos);
  CHECK(field(server.request("tools/call", {{"name", "check_process"}}), "error", "code") == -32602);
}

TEST_CASE("commands: a maximum run time ends the whole tree") {
  on_both_channels([](Server& server, const Container& container) {
    const json result = server.execute("setsid sleep 4321 & trap '' TERM; while :; do sleep 0.1; done",
                                       {{"maxRuntime", 0.5}, {"maxWaitTime", 30}});
    CHECK(field(fields_of(result), "cause") == "timeout");
    CHECK(field(fields_of(result), "status") == "completed");
    eventually("nothing of the tree is left", [&] { return container.pids_of("sleep 4321").empty(); });
  });
}

TEST_CASE("commands: calls run in parallel and answer in any order") {
  on_both_channels([](Server& server, const Container&) {
    const int slow = server.start_call("execute_command", {{"command", "sleep 1; echo slow"}});
    std::set<int> quick;
    for (int i = 0; i < 20; ++i) {
      quick.insert(server.start_call("execute_command", {{"command", fmt::format("echo {}", i)}}));
    }
    for (std::size_t i = 0; i < 20; ++i) {
      const int id = field(server.receive(), "id");
      CHECK(id != slow);
      CHECK(quick.erase(id) == 1);
    }
    CHECK(field(fields_of(field(server.receive_answer(slow), "result")), "stdout") == "slow\n");
  });
}

TEST_CASE("commands: a cancelled call ends its tree and gets no reply") {
  on_both_channels([](Server& server, const Container& container) {
    const int id = server.start_call("execute_command", {{"command", "sleep 7654 & setsid sleep 7654 & sleep 7654"}});
    eventually("the tree runs", [&] { return container.pids_of("sleep 7654").size() >= 3; });
    server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
    eventually("the tree is gone", [&] { return container.pids_of("sleep 7654").empty(); });
    CHECK(field(server.request("ping"), "result") == json::object());
    for (const json& message : server.seen) {
      CHECK(message.value("id", json(nullptr)) != id);
    }
  });
}
