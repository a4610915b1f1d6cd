#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

std::string happened(Connected& c, const std::string& command, bool tty, const std::string& input, double patience) {
  const std::string id = start_in_background(c.server, command, {{"tty", tty}});
  if (!input.empty()) {
    CHECK(field(fields_of(check(c.server, id, {{"waitFor", {{"input", true}}}, {"timeout", 20}})), "happened") ==
          "input");
    c.server.call("send_input", {{"processId", id}, {"input", input}, {"timeout", 0}});
  }
  const json result = check(c.server, id, {{"waitFor", {{"input", true}}}, {"timeout", patience}});
  control(c.server, id, "kill");
  return field(fields_of(result), "happened");
}

}  // namespace

TEST_CASE("node: waits for input if it has nothing else to do") {
  Connected c;
  CHECK(happened(c, "node -e 'process.stdin.resume()'", false, "", 15) == "input");
  CHECK(happened(c, "node -e 'process.stdin.resume()'", true, "", 15) == "input");
  CHECK(happened(c, "node", true, "", 15) == "input");
  CHECK(happened(c, "node", true, "1 + 1", 15) == "input");
  const std::string asks =
      "node -e 'require(\"readline\").createInterface({input: process.stdin, output: process.stdout})"
      ".question(\"Name? \", () => process.exit())'";
  CHECK(happened(c, asks, false, "", 15) == "input");
  CHECK(happened(c, asks, true, "", 15) == "input");
}

TEST_CASE("node: a pending await, a timer or a child is other work") {
  Connected c;
  const std::string wait = "await new Promise(done => setTimeout(done, 6000))";
  CHECK(happened(c, "node", true, wait, 2) == "timeout");
  CHECK(happened(c, "node -e 'process.stdin.resume(); setInterval(() => {}, 1000)'", false, "", 2) == "timeout");
  CHECK(happened(c, "node -e 'process.stdin.resume(); setTimeout(() => {}, 6000)'", true, "", 2) == "timeout");
  CHECK(happened(c, "node", true, "await require(\"util\").promisify(require(\"child_process\").exec)(\"sleep 600\")",
                 2) == "timeout");
}

TEST_CASE("ipython and gdb: prompts and answers on a terminal are detected") {
  Connected c;
  CHECK(happened(c, "ipython3", true, "", 15) == "input");
  CHECK(happened(c, "ipython3", true, "import time; time.sleep(600)", 2) == "timeout");
  const json started = c.server.execute("gdb -q -nx /bin/true", {{"tty", true}});
  CHECK(field(fields_of(started), "returned") == "waits_for_input");
  const std::string id = field(fields_of(started), "processId");
  const json answered = c.server.call("send_input", {{"processId", id}, {"input", "print 6 * 7"}});
  CHECK(field(fields_of(answered), "stdout") == "$1 = 42\n(gdb) ");
  CHECK(text_of(answered).starts_with("$1 = 42\n(gdb) \n"));
}

TEST_CASE("ipython: an answer is lines, not a screen") {
  Connected c;
  const json started = c.server.execute("ipython3", {{"tty", true}, {"maxWaitTime", 20}});
  CHECK(field(fields_of(started), "returned") == "waits_for_input");
  const json answered =
      c.server.call("send_input", {{"processId", field(fields_of(started), "processId")}, {"input", "6 * 7"}});
  CAPTURE(answered.dump());
  CHECK(field(fields_of(answered), "stdout").get<std::string>().find("Out[1]: 42") != std::string::npos);
  CHECK(field(fields_of(answered), "stdout").get<std::string>().find("In [2]: ") != std::string::npos);
  CHECK_FALSE(fields_of(answered).contains("screen"));
}
