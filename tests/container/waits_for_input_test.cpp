#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A real program, with or without a terminal, and its input before the check.
struct Program {
  std::string command;
  bool tty = false;
  std::string input{};
};

struct Running {
  Program program;
  std::string id;
  int call = 0;
};

/// Starts all programs, sends the input of each when it waits for it, and waits until it waits for input again. Returns
/// the outcome of each wait: "input", "timeout" or "exit".
std::vector<std::pair<Program, std::string>> outcomes(Connected& c, const std::vector<Program>& programs,
                                                      double patience) {
  std::vector<Running> all;
  for (const Program& program : programs) {
    all.push_back({program, start_in_background(c.server, program.command, {{"tty", program.tty}})});
  }
  for (const Running& running : all) {
    if (!running.program.input.empty()) {
      CAPTURE(running.program.command);
      const json asked = check(c.server, running.id, {{"waitFor", {{"input", true}}}, {"timeout", 20}});
      REQUIRE(field(fields_of(asked), "happened") == "input");
      c.server.call("send_input",
                    {{"processId", running.id}, {"input", running.program.input}, {"timeout", 0}, {"screen", false}});
    }
  }
  for (Running& running : all) {
    running.call = c.server.start_call(
        "check_process",
        {{"processId", running.id}, {"waitFor", {{"input", true}}}, {"timeout", patience}, {"screen", false}});
  }
  std::vector<std::pair<Program, std::string>> found;
  for (const Running& running : all) {
    const json result = field(c.server.receive_answer(running.call, seconds(60)), "result");
    CAPTURE(running.program.command);
    CAPTURE(result.dump());
    REQUIRE(field(result, "isError") == false);
    found.emplace_back(running.program, field(fields_of(result), "happened"));
    control(c.server, running.id, "kill");
  }
  return found;
}

void check_that_they_wait(Connected& c, const std::vector<Program>& programs) {
  for (const auto& [program, happened] : outcomes(c, programs, 15)) {
    CAPTURE(program.command);
    CHECK(happened == "input");
  }
}

void check_that_they_do_not(Connected& c, const std::vector<Program>& programs) {
  for (const auto& [program, happened] : outcomes(c, programs, 2)) {
    CAPTURE(program.command);
    CHECK(happened == "timeout");
  }
}

}  // namespace

TEST_CASE("waits for input: programs that only read are reported") {
  Connected c;
  check_that_they_wait(c, {
                              {"cat"},
                              {"sh -c 'read x'"},
                              {"read -p 'Continue? [y/n] ' x"},
                              {"read -t 60 x"},
                              {"select x in a b; do break; done"},
                              {"sed p"},
                              {"awk '{print}'"},
                              {"sort"},
                              {"jq ."},
                              {"rg needle"},
                              {"xargs echo"},
                              {"openssl sha256"},
                              {"perl -e '$x = <STDIN>'"},
                              {"python3 -c 'input()'"},
                              {"python3 -i -q"},
                              {"python3 -c 'import sys; sys.stdin.read()'"},
                              {"python3 -c 'import asyncio,sys\nasync def f(): await asyncio.get_event_loop()"
                               ".connect_read_pipe(asyncio.Protocol, sys.stdin); await asyncio.Event().wait()\n"
                               "asyncio.run(f())'"},
                              {"sleep 600 & cat"},
                              {"su nobody -s /bin/cat"},
                              {"node -i", false, "await new Promise(r => setTimeout(() => r(9), 1000))"},
                              {"node -e 'process.stdin.resume(); process.stdout.write(\"Name? \"); "
                               "setTimeout(() => {}, 30000)'"},
                          });
  check_that_they_wait(c, {
                              {"bash --norc", true},
                              {"dash", true},
                              {"python3 -q", true},
                              {"less /etc/passwd", true},
                              {"more /etc/ssl/openssl.cnf", true},
                              {"vim -u NONE", true},
                              {"top -d 30", true},
                              {"read -s -p Password: x", true},
                              {"python3 -c 'import getpass; getpass.getpass()'", true},
                              {"su nobody -s /bin/bash", true},
                              {"exec setpriv --reuid=65534 --regid=65534 --clear-groups su", true},
                              {"su nobody -s /bin/sh -c 'su -c id'", true},
                              {"git -c core.pager=less -C / diff --no-index /etc/passwd /etc/group", true},
                          });
}

TEST_CASE("waits for input: programs that have other work are not reported") {
  Connected c;
  check_that_they_do_not(c, {
                                {"sleep 600"},
                                {"sleep 600 | sort"},
                                {"tail -f /etc/passwd"},
                                {"cat < <(sleep 600)"},
                                {"while :; do :; done"},
                                {"python3 -m http.server 8200"},
                                {"perl -e 'sleep 600'"},
                                {"watch -n 60 true", true},
                                {"cat < /dev/null; sleep 600", true},
                                {"python3 -c 'import threading,time; threading.Thread(target=input).start(); "
                                 "time.sleep(600)'"},
                                {"python3 -c 'import subprocess,select\np = subprocess.Popen([\"sleep\", \"600\"], "
                                 "stdout=subprocess.PIPE)\nselect.select([0, p.stdout], [], [])'"},
                                {"bash --norc", true, "sleep 600"},
                                {"python3 -q", true, "import time; time.sleep(600)"},
                                {"python3 -i -q", false, "import time; time.sleep(600)"},
                                {"node -i", false, "await new Promise(r => setTimeout(() => r(9), 6000))"},
                                {"node -e 'process.stdin.resume(); process.stdout.write(\"Fetching... \"); "
                                 "setTimeout(() => {}, 30000)'"},
                                {"node -e 'process.stdin.resume(); process.stdout.write(\"Loading \"); "
                                 "setInterval(() => process.stdout.write(\".\"), 1500)'",
                                 true},
                                {"python3 -c 'import asyncio,sys\nasync def f(): await asyncio.get_event_loop()"
                                 ".connect_read_pipe(asyncio.Protocol, sys.stdin); print(\"working \", end=\"\", "
                                 "flush=True); await asyncio.sleep(600)\nasyncio.run(f())'"},
                            });
}

TEST_CASE("waits for input: a process that cannot be inspected is unknown") {
  Connected c;
  const json result = c.server.execute("su -c true", {{"user", "nobody"}, {"maxWaitTime", 2}});
  CAPTURE(result.dump());
  CHECK(field(fields_of(result), "returned") == "quiet");
  CHECK(field(fields_of(result), "waitsForInput") == "unknown");
}

TEST_CASE("waits for input: a process that may wait says how it is answered") {
  Connected c;
  const std::string nested = "script -qc \"PS1='$ ' bash --norc\" /dev/null";
  const json silent = c.server.execute(nested, {{"tty", true}, {"maxWaitTime", 1}});
  CAPTURE(silent.dump());
  CHECK(field(fields_of(silent), "waitsForInput") == "unknown");
  CHECK(text_of(silent).ends_with("no output for 1 s. It may wait for input; send_input answers it."));
  const json checked = check(c.server, field(fields_of(silent), "processId"));
  CHECK(text_of(checked).find("It may wait for input; send_input answers it.") != std::string::npos);
}
