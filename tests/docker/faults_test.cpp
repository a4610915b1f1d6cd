#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <random>
#include <thread>

#include "support/connected.hpp"
#include "support/full.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr int k_lines = 30'000;

/// Numbers on stdout and on stderr, in bursts, so that output is under way all the time.
const std::string k_talker = fmt::format(
    "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo $i; [ $((i % 3)) = 0 ] && echo e$i >&2; [ $((i % 500)) = 0 ] && "
    "sleep "
    "0.01; done; exit 3",
    k_lines);

std::string expected_stdout() {
  std::string text;
  for (int i = 1; i <= k_lines; ++i) {
    text += std::to_string(i) + "\n";
  }
  return text;
}

std::string expected_stderr() {
  std::string text;
  for (int i = 3; i <= k_lines; i += 3) {
    text += fmt::format("e{}\n", i);
  }
  return text;
}

/// All the output, read from cursor to cursor.
struct Heard {
  std::string out;
  std::string err;
  json last;
};

Heard read_all(Server& server, const std::string& process) {
  Heard heard;
  std::string cursor = "0:0";
  while (true) {
    heard.last =
        fields_of(check(server, process, {{"since", cursor}, {"maxOutput", 400000}, {"raw", true}, {"timeout", 60}}));
    // What is left for the next call is announced on a line of its own.
    for (const auto& [name, to] : {std::pair("stdout", &heard.out), std::pair("stderr", &heard.err)}) {
      std::string text = heard.last[name];
      if (const auto note = text.find("\n[");
          note != std::string::npos && text.find("more bytes of") != std::string::npos) {
        text.resize(note + 1);
      } else if (text.starts_with("[") && text.find("more bytes of") != std::string::npos) {
        text.clear();
      }
      *to += text;
    }
    if (heard.last["cursor"] == cursor) {
      return heard;
    }
    cursor = heard.last["cursor"];
  }
}

}  // namespace

TEST_CASE("kill -9 of the server and of the session at random moments loses no byte of output") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::minstd_rand random(20);
  const int rounds = full_run() ? 200 : 20;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    std::string id;
    {
      Server first({"-c", container.name()});
      first.initialize();
      id = start_in_background(first, k_talker);
      std::this_thread::sleep_for(milliseconds(random() % 300));
      if (random() % 2 == 0) {
        first.signal(SIGKILL);
      } else {
        for (const int pid : container.pids_of(k_session)) {
          ::kill(pid, SIGKILL);
        }
      }
    }
    Server second({"-c", container.name()});
    second.initialize();
    const Heard heard = read_all(second, id);
    CHECK(heard.last["exitCode"] == 3);
    CHECK(heard.out == expected_stdout());
    CHECK(heard.err == expected_stderr());
  }
}

TEST_CASE("when the disk for output is full, the command goes on, and what was not kept is counted exactly") {
  Connected c({"--init", "--tmpfs", "/var/lib/dockbridge/state:size=2m,mode=755"});
  const json result =
      c.server.execute("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end", {{"maxOutput", 1000}});
  CAPTURE(result.dump());
  CHECK(fields_of(result)["exitCode"] == 0);
  CHECK(fields_of(result)["stdoutBytes"] == 20000009);
  const auto shown = 20000009 - fields_of(result)["stdoutLeftOut"].get<std::int64_t>();
  CHECK(shown > 0);
  CHECK(text_of(result).find("were not kept") != std::string::npos);
  CHECK(fields_of(c.server.execute("echo still works"))["exitCode"] == 0);
}

TEST_CASE("a client that stops reading slows no other, and gets all its answers when it reads again") {
  Connected slow;
  Server other({"-c", slow.container.name()});
  other.initialize();
  other.execute("true");
  std::vector<int> calls;
  for (int i = 0; i < 60; ++i) {
    calls.push_back(slow.server.start_call(
        "execute_command", {{"command", "head -c 60000 /dev/zero | tr '\\0' x"}, {"maxOutput", 100000}}));
  }
  const auto began = Clock::now();
  for (int i = 0; i < 50; ++i) {
    CHECK(fields_of(other.execute(fmt::format("echo {}", i)))["stdout"] == fmt::format("{}\n", i));
  }
  CHECK(Clock::now() - began < seconds(20));
  for (const int call : calls) {
    CHECK(fields_of(slow.server.receive_answer(call)["result"])["stdoutBytes"] == 60000);
  }
}

TEST_CASE("a line of 100 MB and a megabyte of noise are counted exactly, and do no harm") {
  Connected c;
  const json line = c.server.execute("head -c 100000000 /dev/zero | tr '\\0' x", {{"maxOutput", 2000}});
  CHECK(fields_of(line)["stdoutBytes"] == 100000000);
  CHECK(fields_of(line)["stdout"].get<std::string>().size() < 3000);
  const json noise = c.server.execute("head -c 1000000 /dev/urandom");
  CHECK(fields_of(noise)["stdoutBytes"] == 1000000);
  CHECK(text_of(noise).find("not UTF-8") != std::string::npos);
  CHECK(fields_of(c.server.execute("echo well"))["stdout"] == "well\n");
}

TEST_CASE("what is left of a killed keeper's tree is found and reported") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 777 & sleep 777");
  eventually("sleepers", [&] { return c.container.sh("pgrep -cfx 'sleep 777' || true") == "2"; });
  for (const int pid : c.container.pids_of(k_keeper)) {
    ::kill(pid, SIGKILL);
  }
  eventually("it is lost", [&] { return fields_of(check(c.server, id))["status"] == "lost"; });
  const json lost = check(c.server, id);
  CAPTURE(lost.dump());
  CHECK_FALSE(fields_of(lost).contains("exitCode"));
  CHECK(fields_of(lost)["processCount"] == 3);
  CHECK(text_of(lost).find("still run") != std::string::npos);
  control(c.server, id, "kill");
  eventually("it is gone", [&] { return c.container.sh("pgrep -cfx 'sleep 777' || true") == "0"; });
  CHECK(error_of(control(c.server, id, "kill"))["code"] == "process_ended");
}
