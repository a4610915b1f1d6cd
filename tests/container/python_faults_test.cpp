#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/connected.hpp"
#include "support/full.hpp"
#include "support/memory.hpp"
#include "support/repeated.hpp"

using namespace dockbridge;
using test::Connected;
using test::error_of;
using test::field;
using test::fields_of;
using test::json;
using test::text_of;

namespace {

struct Plain : Connected {
  explicit Plain(const std::vector<std::string>& options = {"--init"},
                 const std::string& image = "dockbridge-test:slim", std::vector<std::string> more = {})
      : Connected(options, image, [&] {
          more.insert(more.end(), {"--structured", "on", "--python-ipython", "never"});
          return more;
        }()) {}
  json run(const std::string& code, json more = json::object()) {
    more["code"] = code;
    more.emplace("session", "main");
    return server.call("python", std::move(more), seconds(90));
  }
  std::string text(const std::string& code, json more = json::object()) { return text_of(run(code, std::move(more))); }
};

}  // namespace

TEST_CASE("python faults: an image without Python is told how to install it") {
  Plain python({"--init"}, "dockbridge-test:sh-only");
  const json result = python.run("1");
  CHECK(field(error_of(result), "code") == "no_python");
  CHECK(field(error_of(python.server.call("python", {{"code", "1"}})), "code") == "no_python");
}

TEST_CASE("python faults: a wrong interpreter is an error") {
  Plain python;
  for (const char* path : {"/no/such/python", "/etc/passwd", "/etc", "no-such-python"}) {
    CAPTURE(path);
    CHECK(field(error_of(python.run("1", {{"interpreter", path}})), "code") == "no_python");
  }
  const json other = python.run("1", {{"interpreter", "/bin/true"}, {"session", "true"}});
  CHECK(field(error_of(other), "code") == "cannot_start");
}

TEST_CASE("python faults: an old Python is an error that states its version") {
  Plain python;
  (void)python.container.sh(
      "printf '#!/bin/sh\\necho \\047{\"event\":\"too_old\",\"version\":\"3.6.9\"}\\047 >&3\\nexit 1\\n' > /tmp/old && "
      "chmod +x /tmp/old");
  for (const json& more : {json{{"interpreter", "/tmp/old"}}, json{{"interpreter", "/tmp/old"}, {"session", ""}}}) {
    const json result = python.run("1", more);
    CHECK(field(error_of(result), "code") == "python_too_old");
    CHECK(field(error_of(result), "message") == "Python 3.6.9 is too old; 3.8 or newer is required");
  }
}

TEST_CASE("python faults: a venv can be the interpreter") {
  Plain python;
  (void)python.container.sh("python3 -m venv --without-pip /tmp/venv");
  CHECK(python.text("import sys; sys.prefix", {{"interpreter", "/tmp/venv"}}).find("'/tmp/venv'") == 0);
  CHECK(python.text("1", {{"interpreter", "/usr/bin/python3"}})
            .find("Note: the session uses /tmp/venv/bin/python3; with reset: true it starts again") !=
        std::string::npos);
}

TEST_CASE("python faults: a megabyte of code runs") {
  Plain python;
  const std::string code = "x = 0\n" + test::repeated("x += 1  # é\n", 80'000) + "x";
  CHECK(python.text(code).find("80000") == 0);
  CHECK(text_of(python.server.call("python", {{"code", code}}, seconds(90))) == "80000");
}

TEST_CASE("python faults: NUL bytes in code are an error of Python") {
  Plain python;
  const json result = python.run(std::string("a\0b", 3));
  CHECK(field(fields_of(result), "status") == "error");
  CHECK(python.text("1") == "1");
}

TEST_CASE("python faults: output that is not UTF-8 is shown and counted") {
  Plain python;
  const std::string text = python.text("import os; _ = os.write(1, b'a\\xff\\xfe\\xc3')");
  CHECK(text.find("a\xEF\xBF\xBD") == 0);
  CHECK(text.find("3 bytes are not UTF-8") != std::string::npos);
  CHECK(python.text("os.write(1, b'\\xa9')").find("\xEF\xBF\xBD") == 0);
}

TEST_CASE("python faults: a recursion error is short, and the state is kept") {
  Plain python;
  (void)python.text("x = 1");
  const std::string text = python.text("def f(): f()\nf()");
  CHECK(text.find("RecursionError") != std::string::npos);
  CHECK(text.size() < 3000);
  CHECK(python.text("x") == "1");
}

TEST_CASE("python faults: without memory the reply is truthful") {
  Plain python({"--init", "--memory", "256m", "--memory-swap", "256m"});
  (void)python.text("x = 1");
  const json error = python.run(
      "import resource\nresource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))\n"
      "y = bytearray(400 << 20)");
  CHECK(field(fields_of(error), "error", "name") == "MemoryError");
  CHECK(python.text("x") == "1");
  (void)python.text("1", {{"reset", true}});
  const json killed = python.run("y = []\nwhile True: y.append(bytearray(b'x' * (10 << 20)))");
  const std::string status = field(fields_of(killed), "status");
  const std::string next = python.text("'y' in globals()");
  CAPTURE(text_of(killed));
  CAPTURE(next);
  CHECK((status == "died" || status == "error"));
  CHECK((status == "died") == (next.find("its state is lost") != std::string::npos));
}

TEST_CASE("python faults: a deleted working directory does not end the session") {
  Plain python;
  (void)python.text("import os\nos.makedirs('/tmp/gone')\nos.chdir('/tmp/gone')\nos.rmdir('/tmp/gone')");
  CHECK(python.text("1+1") == "2");
  CHECK(python.text("1", {{"cwd", "/tmp/gone"}}).find("FileNotFoundError") != std::string::npos);
  CHECK(field(error_of(python.run("1", {{"cwd", "/tmp/gone"}, {"session", "other"}})), "code") == "bad_cwd");
}

TEST_CASE("python faults: a read-only root file system is enough") {
  Plain python({"--init", "--read-only", "--tmpfs", "/tmp", "--volume", "/var/lib/dockbridge"});
  CHECK(python.text("x = 2").find("(no output)") == 0);
  CHECK(python.text("x") == "2");
}

TEST_CASE("python faults: user code may close and replace streams, fork and run threads") {
  Plain python;
  CHECK(python.text("import sys, os\nsys.stdout = None\n1").find("1") == 0);
  CHECK(python.text("sys.stdout = sys.__stdout__\nprint('back')") == "back");
  CHECK(python.text("pid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)[1]") == "0");
  CHECK(python.text("import threading, time\n"
                    "threading.Thread(target=lambda: (time.sleep(0.3), print('from a thread'))).start()\n1") == "1");
  (void)python.server.execute("sleep 0.6");
  CHECK(python.text("2") == "from a thread\n2");
  CHECK(python.text("os.close(3)").find("OSError") != std::string::npos);
  CHECK(python.text("os.closerange(0, 3)").find("(no output)") == 0);
  CHECK(python.text("5") == "5");
}

TEST_CASE("python faults: the output of child processes is complete and in order") {
  Plain python;
  CHECK(python.text("import subprocess\nprint('a')\nsubprocess.run(['echo', 'b'])\nprint('c');").find("a\nb\nc") == 0);
  CHECK(python.text("!echo shell") == "shell");
}

TEST_CASE("python faults: 100 MB of output are counted, and memory stays flat") {
  Plain python;
  (void)python.text("1");
  const std::string text = python.text("for i in range(100): print('x' * 999_999)\n'end'", {{"maxWaitTime", 60}});
  CHECK(text.find("of 100000000 bytes left out.") != std::string::npos);
  CHECK(text.ends_with("'end'"));
}

TEST_CASE("python faults: a value and a traceback that are too long are cut and counted") {
  Plain python;
  const std::string value = python.text("'x' * 50_000");
  CHECK(value.size() < 10'000);
  CHECK(value.find("bytes left out; _ holds the value]") != std::string::npos);
  CHECK(python.text("len(_)") == "50000");
  const std::string huge = python.text("'x' * 200_000");
  CHECK(huge.find("it has 200002 characters") != std::string::npos);
  const std::string error = python.text("raise ValueError('y' * 50_000)");
  CHECK(error.size() < 11'000);
  CHECK(error.find("bytes left out]") != std::string::npos);
}

TEST_CASE("python faults: a hostile program on the side channel does not confuse the server") {
  Plain python;
  (void)python.text("1");
  // The driver has moved the channel to a high descriptor.
  (void)python.text(
      "import os\n"
      "for fd in range(100, 110):\n"
      "    try: os.write(fd, b'\\xff\\x00garbage{\"event\":\"end\",\"cell\":99}\\n' * 100)\n"
      "    except OSError: pass");
  CHECK(python.text("40 + 2") == "42");
}

TEST_CASE("python faults: 16 sessions at once do not mix") {
  Plain python;
  std::vector<int> ids;
  for (int i = 0; i < 16; ++i) {
    ids.push_back(
        python.server.start_call("python", {{"code", "mine = " + std::to_string(i) + "\nprint('out', mine)\nmine * 7"},
                                            {"session", "s" + std::to_string(i)}}));
  }
  for (int i = 0; i < 16; ++i) {
    const json result = field(python.server.receive_answer(ids[static_cast<std::size_t>(i)], seconds(60)), "result");
    CHECK(text_of(result).find("out " + std::to_string(i) + "\n" + std::to_string(i * 7) + "\n") == 0);
  }
  for (int i = 0; i < 16; ++i) {
    CHECK(python.text("mine", {{"session", "s" + std::to_string(i)}}) == std::to_string(i));
  }
  CHECK(field(error_of(python.run("1", {{"session", "s16"}})), "code") == "too_many_sessions");
}
