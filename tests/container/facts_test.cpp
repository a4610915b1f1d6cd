#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("facts: time, memory, disk, tree and reason are reported for a process") {
  Connected c;
  const std::string id = start_in_background(
      c.server,
      "python3 -c 'import time; x = bytearray(60_000_000); any(time.process_time() > 0.2 for _ in iter(int, 1))'; "
      "dd if=/dev/zero of=/root/f bs=1M count=5 conv=fsync 2>/dev/null; sleep 60 & sleep 60 & read x",
      {{"rationale", "see what it takes"}});
  const json running = fields_of(check(c.server, id, {{"waitFor", {{"input", true}}}, {"timeout", 30}}));
  CAPTURE(running.dump());
  CHECK(field(running, "cpuMs").get<int>() > 150);
  CHECK(field(running, "peakMemoryBytes").get<std::int64_t>() > 1'000'000);
  CHECK(field(running, "processCount") == 3);
  CHECK(field(running, "rationale") == "a test");
  CHECK(field(running, "cwd") == "/app");
  CHECK_FALSE(field(running, "startedAt").get<std::string>().empty());
  control(c.server, id, "kill");
  const json ended = fields_of(check(c.server, id));
  CAPTURE(ended.dump());
  CHECK(field(ended, "cpuMs").get<int>() >= field(running, "cpuMs").get<int>());
  CHECK(field(ended, "peakMemoryBytes").get<std::int64_t>() > 60'000'000);
  CHECK(field(ended, "diskWrittenBytes").get<std::int64_t>() >= 5 * 1024 * 1024);
  CHECK_FALSE(field(ended, "endedAt").get<std::string>().empty());
  Server other({"-c", c.container.name()});
  other.initialize();
  CHECK(field(fields_of(check(other, id)), "peakMemoryBytes") == field(ended, "peakMemoryBytes"));
}

TEST_CASE("facts: a command over its output limit is ended, its output is kept") {
  Connected c;
  const json result = c.server.execute("trap '' TERM PIPE; while :; do echo line; done", {{"outputLimit", 100000}});
  CHECK(field(fields_of(result), "cause") == "output");
  CHECK(field(fields_of(result), "stdoutBytes").get<int>() > 100000);
  CHECK(text_of(result).find("output limit exceeded") == text_of(result).rfind("output limit exceeded"));
  CHECK(text_of(result).find("output limit exceeded") != std::string::npos);
  CHECK(field(fields_of(c.server.execute("seq 100", {{"outputLimit", 100000}})), "exitCode") == 0);
}

TEST_CASE("facts: a command can run with low priority") {
  Connected c;
  CHECK(field(fields_of(c.server.execute("nice", {{"nice", 7}})), "stdout") == "7\n");
  CHECK(field(fields_of(c.server.execute("nice")), "stdout") == "0\n");
  CHECK(field(error_of(c.server.execute("nice", {{"nice", 20}})), "code") == "bad_arguments");
}

TEST_CASE("facts: out of memory kills the largest process and is reported") {
  Connected c({"--init", "--memory", "128m", "--memory-swap", "128m"});
  const std::string bystander = start_in_background(c.server, "sleep 60");
  const json shell = c.server.execute("python3 -c 'x = bytearray(500_000_000)'; exit $?");
  CAPTURE(shell.dump());
  CHECK(field(fields_of(shell), "exitCode") == 137);
  CHECK(field(fields_of(shell), "cause") == "memory");
  CHECK(text_of(shell).find("out of memory") != std::string::npos);
  const json itself = c.server.execute("exec python3 -c 'x = bytearray(500_000_000)'");
  CHECK(field(fields_of(itself), "signal") == "SIGKILL");
  CHECK(field(fields_of(itself), "cause") == "memory");
  CHECK(fields_of(c.server.execute("kill -KILL $$")).contains("cause") == false);
  CHECK(field(fields_of(check(c.server, bystander)), "status") == "running");
}

TEST_CASE("facts: processes of a stopped container are reported as such") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 600");
  run_ok({"docker", "restart", "--time", "0", c.container.name()});
  const json gone = check(c.server, id);
  CAPTURE(gone.dump());
  CHECK(field(fields_of(gone), "status") == "lost");
  CHECK(field(fields_of(gone), "cause") == "container");
  CHECK_FALSE(fields_of(gone).contains("exitCode"));
}

TEST_CASE("retention: finished processes expire by number and are reported so") {
  Connected c({"--init"}, "dockbridge-test:slim", {"--retention-count", "3"});
  const std::string first = field(fields_of(c.server.execute("echo first")), "processId");
  for (int i = 0; i < 4; ++i) {
    c.server.execute("true");
  }
  // A new session deletes expired processes when it starts.
  Server other({"-c", c.container.name(), "--retention-count", "3"});
  other.initialize();
  other.execute("true");
  eventually("the process expires", [&] {
    const json result = check(other, first);
    return field(result, "isError") == true && field(error_of(result), "code") == "process_expired";
  });
}

TEST_CASE("retention: finished processes expire by age, every tool reports it") {
  Connected c({"--init"}, "dockbridge-test:slim", {"--retention-age", "1"});
  const std::string id = field(fields_of(c.server.execute("echo old")), "processId");
  eventually("the process expires", [&] {
    Server later(c.with_name({"--retention-age", "1"}));  // a new session deletes expired processes when it starts
    later.initialize();
    later.execute("true");
    return field(check(later, id), "isError") == true;
  });
  CHECK(field(error_of(check(c.server, id)), "code") == "process_expired");
  CHECK(field(error_of(check(c.server, id, {{"since", "0:0"}})), "code") == "process_expired");
  CHECK(field(error_of(check(c.server, id, {{"grep", "old"}})), "code") == "process_expired");
  CHECK(field(error_of(check(c.server, id, {{"waitFor", {{"exit", true}}}})), "code") == "process_expired");
  CHECK(field(error_of(control(c.server, id, "kill")), "code") == "process_expired");
  CHECK(field(error_of(c.server.call("send_input", {{"processId", id}, {"input", "x"}})), "code") == "process_expired");
}

TEST_CASE("facts: the path of the stored output is reported") {
  Connected c;
  const json result = fields_of(c.server.execute("seq 1 20000; echo oops >&2"));
  const std::string read =
      fmt::format("tail -c +4097 {} | md5sum; seq 1 20000 | md5sum; tail -c +4097 {}",
                  field(result, "stdoutFile").get<std::string>(), field(result, "stderrFile").get<std::string>());
  const std::string lines = c.container.sh(read);
  CHECK(lines.substr(0, 32) == lines.substr(lines.find('\n') + 1, 32));
  CHECK(lines.find("oops") != std::string::npos);
}
