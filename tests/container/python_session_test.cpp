#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "support/connected.hpp"
#include "support/full.hpp"
#include "support/repeated.hpp"

using namespace dockbridge;
using test::Connected;
using test::Container;
using test::error_of;
using test::field;
using test::fields_of;
using test::json;
using test::Server;
using test::text_of;

namespace {

/// IPython, which the test image has, takes longer to load than these tests.
const std::vector<std::string> k_plain = {"--structured", "on", "--python-ipython", "never"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

struct Python : Connected {
  explicit Python(const std::vector<std::string>& arguments = {}, const std::vector<std::string>& options = {"--init"},
                  const std::string& image = "dockbridge-test:slim")
      : Connected(options, image, with(k_plain, arguments)) {}

  json call(json arguments) { return server.call("python", std::move(arguments), seconds(60)); }
  json run(const std::string& code, json more = json::object()) {
    more["code"] = code;
    more.emplace("session", "main");
    return call(std::move(more));
  }
  std::string text(const std::string& code, json more = json::object()) { return text_of(run(code, std::move(more))); }
  std::string status(const std::string& code, json more = json::object()) {
    const json result = run(code, std::move(more));
    CAPTURE(text_of(result));
    return field(fields_of(result), "status");
  }
  std::string process() { return field(fields_of(run("None")), "processId"); }
};

}  // namespace

TEST_CASE("python: a session keeps its variables, and a value is the whole reply") {
  Python python;
  CHECK(python.text("x = 20") == "(no output)\n[new session main: p1]");
  CHECK(python.text("x + 1") == "21");
  CHECK(python.text("print('a')\nimport sys\nprint('b', file=sys.stderr)\nx") == "a\n[stderr]\nb\n20");
  CHECK(python.text("x;") == "(no output)");
  const json error = python.run("def f():\n    return 1 / 0\nf()");
  CHECK(field(error, "isError") == false);
  CHECK(field(fields_of(error), "status") == "error");
  CHECK(field(fields_of(error), "error", "name") == "ZeroDivisionError");
  CHECK(text_of(error) ==
        "Traceback (most recent call last):\n  File \"<cell 5>\", line 3, in <module>\n    f()\n"
        "  File \"<cell 5>\", line 2, in f\n    return 1 / 0\n           ~~^~~\nZeroDivisionError: division by zero");
  CHECK(python.text("import sys; sys.exit(3)") == "SystemExit: 3\n[the session continues]");
  CHECK(python.text("x") == "20");
}

TEST_CASE("python: without a session nothing is kept") {
  Python python;
  CHECK(text_of(python.call({{"code", "print(1)"}})) == "1");
  CHECK(text_of(python.call({{"code", "x = 2\nx"}})) == "2");
  CHECK(text_of(python.call({{"code", "x"}})).ends_with("NameError: name 'x' is not defined"));
  CHECK(text_of(python.call({{"code", "import sys; sys.exit(3)"}})) == "Exit code: 3");
  CHECK(text_of(python.call({{"code", "import sys; sys.exit('bad')"}})) == "bad\nExit code: 1");
  CHECK(text_of(python.call({{"code", "import os; os._exit(4)"}})) == "Exit code: 4");
  CHECK(text_of(python.call({{"code", "import sys; sys.stdin.read()"}, {"stdin", "given"}})) == "'given'");
  CHECK(text_of(python.call(
            {{"code", "import os; os.getcwd(), os.environ['A']"}, {"cwd", "/tmp"}, {"env", {{"A", "b"}}}})) ==
        "('/tmp', 'b')");
  CHECK(text_of(python.call({{"code", "while True: pass"}, {"maxRuntime", 0.3}})).find("maximum run time exceeded") !=
        std::string::npos);
}

TEST_CASE("python: the arguments are checked") {
  Python python;
  for (const json& bad : {json{{"rationale", "x"}}, json{{"code", "1"}, {"session", "a b"}},
                          json{{"code", "1"}, {"session", "a"}, {"stdin", "x"}}, json{{"code", 1}},
                          json{{"code", "1"}, {"session", "a"}, {"variables", true}}}) {
    CAPTURE(bad.dump());
    CHECK(field(error_of(python.call(bad)), "code") == "bad_arguments");
  }
  CHECK(field(error_of(python.call({{"session", "none"}})), "message") == "There is no session none");
}

TEST_CASE("python: code that takes long is left running, and its result follows") {
  Python python;
  (void)python.text("None");
  const json left =
      python.run("import time\nprint('a', flush=True)\ntime.sleep(1.5)\nprint('b')\n5", {{"timeout", 0.3}});
  CHECK(text_of(left) ==
        "a\n\np1 is still running after 0.3 s. python with session: \"main\" and no code waits for it.");
  CHECK(field(fields_of(left), "status") == "running");
  const json busy = python.run("6");
  CHECK(field(error_of(busy), "code") == "session_busy");
  CHECK(field(error_of(busy), "message") == "The session runs cell 2: `import time`");
  CHECK(text_of(python.call({{"session", "main"}})) == "b\n5");
  CHECK(text_of(python.call({{"session", "main"}})) == "[cell 2 again]\na\nb\n5");
  CHECK(text_of(python.call({{"session", "p1"}})) == "[cell 2 again]\na\nb\n5");
}

TEST_CASE("python: a result that nobody waited for is shown with the next one") {
  Python python;
  (void)python.text("import time");
  (void)python.text("time.sleep(0.5); print('late'); 'value'", {{"timeout", 0.1}});
  std::this_thread::sleep_for(seconds(1));
  CHECK(python.text("1") == "[cell 2 ended meanwhile: ok]\n'value'\n[cell 3]\nlate\n1");
}

TEST_CASE("python: silent code is left running") {
  Python python;
  CHECK(python.text("import time; time.sleep(30)", {{"maxWaitTime", 0.5}})
            .find("p1 is still running: no output for 0.5 s.") == 0);
}

TEST_CASE("python: input is answered by send_input") {
  Python python;
  const json waits = python.run("name = input('name? ')\nage = input('age? ')\nname, age");
  CHECK(text_of(waits) == "name? \n\np1 waits for input. send_input answers it.");
  CHECK(field(fields_of(waits), "status") == "waits_for_input");
  const json first = python.server.call("send_input", {{"processId", "p1"}, {"input", "bob"}});
  CHECK(text_of(first).find("age? ") == 0);
  const json second = python.server.call("send_input", {{"processId", "p1"}, {"input", "42"}});
  CHECK(text_of(second) == "('bob', '42')");
  CHECK(python.text("name") == "'bob'");
}

TEST_CASE("python: an interrupt keeps the state, and the reply says so") {
  Python python;
  (void)python.text("x = 1");
  (void)python.text("while True: pass", {{"timeout", 0.2}});
  CHECK(text_of(test::control(python.server, "p1", "interrupt")) == "p1: cell 2 was interrupted. The state is kept.");
  CHECK(text_of(python.call({{"session", "main"}})).ends_with("KeyboardInterrupt\nInterrupted. The state is kept."));
  CHECK(text_of(test::control(python.server, "p1", "interrupt")) == "p1 ran no cell; nothing was interrupted.");
  CHECK(python.text("x") == "1");
}

TEST_CASE("python: code that never checks for signals is reported truthfully") {
  Python python;
  (void)python.text("x = 1");
  (void)python.text("import itertools; sum(itertools.repeat(1))", {{"timeout", 0.2}});
  CHECK(text_of(test::control(python.server, "p1", "interrupt")) ==
        "p1 still runs cell 2: it has not reacted to the interrupt. terminate ends it, and its state is lost.");
  (void)test::control(python.server, "p1", "kill");
  CHECK(python.text("x").find("[session main ended in cell 2: Killed by signal 9 (SIGKILL); its state is lost. This "
                              "ran in a new one, p2]") == 0);
}

TEST_CASE("python: an endless loop that catches interrupts can be ended") {
  Python python;
  (void)python.text("import signal\nsignal.signal(signal.SIGINT, lambda *a: None)\nwhile True: pass",
                    {{"timeout", 0.3}});
  CHECK(text_of(test::control(python.server, "p1", "interrupt")).find("it has not reacted") != std::string::npos);
  CHECK(text_of(python.call({{"code", "1"}, {"session", "main"}, {"reset", true}})) == "1\n[new session main: p2]");
}

TEST_CASE("python: a time limit interrupts a cell and keeps the session") {
  Python python;
  const json result = python.run("x = 5\nwhile True: pass", {{"maxRuntime", 0.5}});
  CHECK(field(fields_of(result), "status") == "interrupted");
  CHECK(field(fields_of(result), "stateKept") == true);
  CHECK(python.text("x") == "5");
}

TEST_CASE("python: a time limit that cannot apply is reported") {
  Python python;
  (void)python.text("import signal; signal.signal(signal.SIGALRM, lambda *_: None);");
  CHECK(python.text("1", {{"maxRuntime", 5}}).find("maxRuntime does not apply") != std::string::npos);
  (void)python.text("signal.signal(signal.SIGALRM, signal.SIG_DFL);");
  CHECK(python.text("1", {{"maxRuntime", 5}}) == "1");
}

TEST_CASE("python: cancelling the call interrupts the cell and keeps the session") {
  Python python;
  (void)python.text("x = 1");
  const int id = python.server.start_call("python", {{"code", "import time\ntime.sleep(60)"}, {"session", "main"}});
  test::eventually("the cell runs", [&] {
    return text_of(python.server.call("check_process", {{"processId", "p1"}})).find("runs cell 2") != std::string::npos;
  });
  test::cancel(python.server, id);
  test::eventually("the cell was interrupted", [&] {
    return text_of(python.server.call("check_process", {{"processId", "p1"}})).find("runs cell") == std::string::npos;
  });
  CHECK(python.text("x") == "1");
}

TEST_CASE("python: if the client gives up by its own timeout, the cell continues") {
  Python python;
  (void)python.text("import time");
  const int id = python.server.start_call("python", {{"code", "time.sleep(1); 'done'"}, {"session", "main"}});
  test::eventually("the cell runs", [&] {
    return text_of(python.server.call("check_process", {{"processId", "p1"}})).find("runs cell 2") != std::string::npos;
  });
  test::cancel(python.server, id, "McpError: MCP error -32001: Request timed out");
  CHECK(text_of(python.call({{"session", "main"}})).find("'done'") == 0);
}

TEST_CASE("python: the end of a session is reported by the next call") {
  Python python;
  const auto ends = [&](const std::string& code, const std::string& reason) {
    CAPTURE(code);
    (void)python.text("x = 1");
    const json died = python.run(code);
    CHECK(field(fields_of(died), "status") == "died");
    CHECK(text_of(died).find("Session main ended in cell ") != std::string::npos);
    CHECK(text_of(died).find(reason + ". Its state is lost.") != std::string::npos);
    const std::string next = python.text("'x' in globals()");
    CHECK(next.find("[session main ended in cell ") == 0);
    CHECK(next.find(reason + "; its state is lost. This ran in a new one, p") != std::string::npos);
    CHECK(next.ends_with("\nFalse"));
  };
  ends("import os; os._exit(7)", "Exit code: 7");
  ends("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "Killed by signal 9 (SIGKILL)");
  ends("import ctypes; ctypes.string_at(0)", "Killed by signal 11 (SIGSEGV)");
}

TEST_CASE("python: an unused session ends, and the next call says why") {
  Python python({"--session-idle-limit", "1"});
  (void)python.text("x = 1");
  test::eventually("the session has ended", [&] {
    return text_of(python.server.call("check_process", {{"processId", "p1"}})).find("p1 ended") == 0;
  });
  CHECK(python.text("'x' in globals()") ==
        "[session main ended because it was not used (--session-idle-limit); its state is lost. This ran in a new one, "
        "p2]\nFalse");
}

TEST_CASE("python: a busy session does not reach its idle limit") {
  Python python({"--session-idle-limit", "1"});
  CHECK(python.text("import time; time.sleep(2.5); 'done'").find("'done'") == 0);
}

TEST_CASE("python: too many sessions are refused with a list") {
  Python python({"--python-sessions", "2"});
  (void)python.text("1", {{"session", "one"}});
  (void)python.text("1", {{"session", "two"}});
  const json refused = python.run("1", {{"session", "three"}});
  CHECK(field(error_of(refused), "code") == "too_many_sessions");
  const std::string message = field(error_of(refused), "message");
  CHECK(message.find("one (p1, idle 0 s)") != std::string::npos);
  CHECK(message.find("two (p2, idle 0 s)") != std::string::npos);
  CHECK(text_of(python.call({{"code", "1"}})) == "1");
  (void)python.call({{"session", "one"}, {"reset", true}});
  CHECK(python.text("1", {{"session", "three"}}).find("1\n") == 0);
}

TEST_CASE("python: variables are listed") {
  Python python;
  (void)python.text("a = 3\nb = 'text'\nc = [1, 2]\nimport os\ndef f(): pass");
  const json result = python.call({{"session", "main"}, {"variables", true}});
  CHECK(text_of(result).find("a: int, 28 bytes = 3\nb: str of 4, ") == 0);
  CHECK(text_of(result).find("os") == std::string::npos);
  CHECK(field(fields_of(result), "variables", 0, "name") == "a");
}

TEST_CASE("python: the history can be exported and read as a resource") {
  Python python;
  (void)python.text("x = 1");
  (void)python.text("print('out')\nx + 1");
  (void)python.text("1/0");
  const std::string text = text_of(python.call({{"session", "main"}, {"export", "notebook"}}));
  CHECK(text == "Written to /app/main.ipynb");
  const json notebook = json::parse(python.container.sh("cat /app/main.ipynb"));
  CHECK(field(notebook, "nbformat") == 4);
  CHECK(field(notebook, "cells").size() == 3);
  CHECK(field(notebook, "cells", 1, "outputs", 0, "text", 0) == "out\n");
  CHECK(field(notebook, "cells", 1, "outputs", 1, "data", "text/plain", 0) == "2");
  CHECK(field(notebook, "cells", 2, "outputs", 0, "ename") == "ZeroDivisionError");
  for (const char* uri : {"dockbridge://python/main/script", "dockbridge://python/p1/script"}) {
    const json read = field(python.server.request("resources/read", {{"uri", uri}}), "result");
    CHECK(field(read, "contents", 0, "text") ==
          "# %% cell 1\nx = 1\n\n# %% cell 2\nprint('out')\nx + 1\n\n# %% cell 3\n1/0\n");
  }
}

TEST_CASE("python: processes show their session") {
  Python python;
  (void)python.text("1");
  (void)python.text("import time; time.sleep(60)", {{"timeout", 0.2}, {"session", "busy"}});
  const std::string list = text_of(python.server.call("check_process", json::object()));
  CHECK(list.find("p1 session main: 1 cell, idle for ") != std::string::npos);
  CHECK(list.find("p2 session busy runs cell 1 (`import time; time.sleep(60)`)") != std::string::npos);
  const json one = python.server.call("check_process", {{"processId", "p1"}});
  CHECK(field(fields_of(one), "session") == "main");
  CHECK(field(fields_of(one), "sessionKind") == "python");
}

TEST_CASE("python: two servers share a session, and no code runs twice") {
  Python python;
  Server other(python.with_name(k_plain));
  other.initialize();
  (void)python.text("count = 0");
  std::vector<int> ids;
  constexpr int k_rounds = 20;
  int ran = 0;
  for (int i = 0; i < k_rounds; ++i) {
    const json order = {{"code", "count += 1\ncount"}, {"session", "main"}};
    const int first = python.server.start_call("python", order);
    const int second = other.start_call("python", order);
    for (const json& answer : {python.server.receive_answer(first), other.receive_answer(second)}) {
      const json& result = field(answer, "result");
      if (field(result, "isError") == true) {
        CHECK(field(error_of(result), "code") == "session_busy");
      } else {
        ++ran;
      }
    }
  }
  CHECK(ran >= k_rounds);
  CHECK(python.text("count") == std::to_string(ran));
  (void)python.text("import time\ntime.sleep(3)", {{"timeout", 0.2}});
  const auto began = std::chrono::steady_clock::now();
  const json busy = other.call("python", {{"code", "1"}, {"session", "main"}});
  CHECK(field(error_of(busy), "code") == "session_busy");
  CHECK(field(error_of(busy), "message").get<std::string>().ends_with("`import time`"));
  CHECK(std::chrono::steady_clock::now() - began < seconds(2));
}

TEST_CASE("python: two servers that start a session at once share one process") {
  Python python;
  Server other(python.with_name(k_plain));
  other.initialize();
  const json order = {{"code", "import os; os.getpid()"}, {"session", "main"}};
  const int first = python.server.start_call("python", order);
  const int second = other.start_call("python", order);
  const json one = field(python.server.receive_answer(first), "result");
  const json two = field(other.receive_answer(second), "result");
  CAPTURE(text_of(one));
  CAPTURE(text_of(two));
  if (field(one, "isError") == false && field(two, "isError") == false) {
    CHECK(field(fields_of(one), "processId") == field(fields_of(two), "processId"));
  }
  CHECK(python.process() == field(fields_of(other.call("python", {{"code", "1"}, {"session", "main"}})), "processId"));
}

TEST_CASE("python: a cell survives kill -9 of the server, and its result is delivered once") {
  Python python;
  (void)python.text("count = 0\nimport time");
  const int rounds = test::full_run() ? 200 : 12;
  for (int i = 1; i <= rounds; ++i) {
    Server doomed(python.with_name(k_plain));
    doomed.initialize();
    (void)doomed.call("check_process", json::object());
    (void)doomed.start_call("python", {{"code", "time.sleep(0.05); count += 1; count"}, {"session", "main"}});
    std::this_thread::sleep_for(milliseconds(i % 12 * 5));
    doomed.signal(SIGKILL);
    (void)doomed.wait_for_exit();
    Server next(python.with_name(k_plain));
    next.initialize();
    const json result = next.call("python", {{"session", "main"}});
    CAPTURE(text_of(result));
    // The code had run once, or not at all if it was not sent in time. What is shown is what it has computed.
    const std::string text = text_of(result);
    const std::string count = text_of(next.call("python", {{"code", "count"}, {"session", "main"}}));
    CHECK(std::stoi(count) <= i);
    CHECK((text.find(count) != std::string::npos || text == "(no output)"));
  }
  CHECK(std::stoi(python.text("count")) >= rounds / 4);
}

TEST_CASE("python: an idempotency key runs code once, also after a restart") {
  Python python;
  (void)python.text("count = 0");
  const json order = {{"code", "count += 1\ncount"}, {"session", "main"}, {"rationale", "x"}};
  for (int i = 0; i < 3; ++i) {
    Server server(python.with_name(k_plain));
    server.initialize();
    const int id = server.start_call("python", order, test::with_key("key-1"));
    CHECK(text_of(field(server.receive_answer(id), "result")) == "1");
  }
  CHECK(python.text("count") == "1");
}

TEST_CASE("python: code with a key that ends or resets its session runs once") {
  Python python;
  for (const bool resets : {false, true}) {
    const std::string code =
        std::string("import os; open('/app/runs', 'a').write('x')") + (resets ? "" : "; os._exit(3)");
    const json order = {{"code", code}, {"session", "main"}, {"reset", resets}, {"rationale", "x"}};
    for (int i = 0; i < 3; ++i) {
      Server server(python.with_name(k_plain));
      server.initialize();
      const int id = server.start_call("python", order, test::with_key(resets ? "key-r" : "key-e"));
      const std::string text = text_of(field(server.receive_answer(id), "result"));
      CHECK(text.find(resets ? "1" : "Session main ended in cell 1: Exit code: 3") != std::string::npos);
    }
  }
  CHECK(python.text("open('/app/runs').read()") == "'xx'");
}

TEST_CASE("python: after a restart of the container the state is lost, and code is not run silently") {
  Python python;
  (void)python.text("x = 1");
  test::run_ok({"docker", "restart", "--time", "0", python.container.name()});
  const json lost = python.run("x");
  CHECK(field(error_of(lost), "code") == "session_lost");
  CHECK(python.text("1").find("1\n[new session main: p") == 0);
}

TEST_CASE("python: kill -9 of the keeper ends the session, and leaves no interpreter") {
  Python python;
  (void)python.text("import os; pid = os.getpid()");
  const std::string pid = python.text("pid");
  for (const int keeper : python.container.pids_of(test::k_keeper)) {
    ::kill(keeper, SIGKILL);
  }
  test::eventually("the interpreter has ended", [&] {
    return python.container.sh("kill -0 " + pid + " 2>/dev/null && echo alive || echo gone") == "gone";
  });
  CHECK(python.text("1").find("its state is lost. This ran in a new one, p") != std::string::npos);
}
