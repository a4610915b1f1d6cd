#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <random>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A client in a separate process, with its own server, that makes many calls with long replies and is then stopped
/// before it reads any of them.
class StoppedClient {
 public:
  explicit StoppedClient(const std::string& container) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const Fd ready_read(ends[0]);
    Fd ready_write(ends[1]);
    m_pid = ::fork();
    REQUIRE(m_pid >= 0);
    if (m_pid == 0) {
      live(container, ready_write.get());
    }
    ready_write.reset();
    char byte = 0;
    REQUIRE(::read(ready_read.get(), &byte, 1) == 1);
    int status = 0;
    REQUIRE(::kill(m_pid, SIGSTOP) == 0);
    REQUIRE(::waitpid(m_pid, &status, WUNTRACED) == m_pid);
    REQUIRE(WIFSTOPPED(status));
  }
  ~StoppedClient() {
    ::kill(m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  StoppedClient(const StoppedClient&) = delete;
  StoppedClient& operator=(const StoppedClient&) = delete;

  [[nodiscard]] bool continues_and_receives_all() const {
    ::kill(m_pid, SIGCONT);
    int status = -1;
    eventually(
        "the client ends", [&] { return ::waitpid(m_pid, &status, WNOHANG) == m_pid; }, seconds(60));
    return status == 0;
  }

 private:
  [[noreturn]] static void live(const std::string& container, int ready) {
    bool good = true;
    try {
      Server server({"-c", container});
      server.initialize();
      std::vector<int> calls;
      for (int i = 0; i < 60; ++i) {
        calls.push_back(server.start_call(
            "execute_command", {{"command", "head -c 60000 /dev/zero | tr '\\0' x"}, {"maxOutput", 100000}}));
      }
      good = ::write(ready, "!", 1) == 1;
      for (const int call : calls) {
        good = good && field(fields_of(field(server.receive_answer(call), "result")), "stdoutBytes") == 60000;
      }
    } catch (...) {
      good = false;
    }
    ::_exit(good ? 0 : 1);
  }

  pid_t m_pid = -1;
};

}  // namespace

TEST_CASE("faults: any cursor returns the kept bytes and exact gaps") {
  constexpr std::uint64_t k_kept_at_either_end = 16 * 1024 * 1024;
  constexpr std::uint64_t k_page = 10'000;
  Connected c;
  const std::string id = field(fields_of(c.server.execute("seq 1 5000000", {{"maxOutput", 1000}})), "processId");
  std::string whole;
  for (int i = 1; i <= 5'000'000; ++i) {
    whole += std::to_string(i) + "\n";
  }
  const std::uint64_t tail = whole.size() - k_kept_at_either_end;
  std::minstd_rand random(3);
  std::vector<std::uint64_t> cursors = {0, k_kept_at_either_end - 1, k_kept_at_either_end, tail - 1, tail};
  for (int i = 0; i < 30; ++i) {
    cursors.push_back(random() % (whole.size() - k_page));
  }
  for (const std::uint64_t cursor : cursors) {
    CAPTURE(cursor);
    const json shown =
        fields_of(check(c.server, id, {{"since", fmt::format("{}:0", cursor)}, {"maxOutput", k_page}, {"raw", true}}));
    std::uint64_t from = cursor;
    json gaps = json::array();
    if (cursor >= k_kept_at_either_end && cursor < tail) {
      from = tail;
      gaps.push_back({{"at", 0}, {"from", cursor}, {"to", tail}, {"notStored", tail - cursor}});
    }
    const std::uint64_t to =
        from < k_kept_at_either_end ? std::min(from + k_page, k_kept_at_either_end) : from + k_page;
    if (to < whole.size()) {
      const std::uint64_t lost = from < k_kept_at_either_end ? tail - k_kept_at_either_end : 0;
      gaps.push_back({{"at", to - from}, {"from", to}, {"to", whole.size()}, {"notStored", lost}});
    }
    CHECK(field(shown, "stdout") == whole.substr(from, to - from));
    CHECK(field(shown, "stdoutFrom") == cursor);
    CHECK(field(shown, "stdoutGaps") == gaps);
    CHECK(field(shown, "cursor") == fmt::format("{}:0", to));
  }
}

TEST_CASE("faults: on a full disk the command continues, lost bytes are counted") {
  Connected c({"--init", "--tmpfs", "/var/lib/dockbridge/state:size=2m,mode=755"});
  const json result =
      c.server.execute("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end", {{"maxOutput", 1000}});
  CAPTURE(result.dump());
  CHECK(field(fields_of(result), "exitCode") == 0);
  CHECK(field(fields_of(result), "stdoutBytes") == 20000009);
  const auto shown = 20000009 - field(fields_of(result), "stdoutLeftOut").get<std::int64_t>();
  CHECK(shown > 0);
  CHECK(text_of(result).find("not stored]") != std::string::npos);
  CHECK(field(fields_of(c.server.execute("echo still works")), "exitCode") == 0);
}

TEST_CASE("faults: a stopped client delays no other and gets all its replies") {
  const Container container("dockbridge-test:slim", {"--init"});
  const StoppedClient client(container.name());
  Server other({"-c", container.name()});
  other.initialize();
  for (int i = 0; i < 50; ++i) {
    CHECK(field(fields_of(other.execute(fmt::format("echo {}", i))), "stdout") == fmt::format("{}\n", i));
  }
  CHECK(client.continues_and_receives_all());
}

TEST_CASE("faults: a line of 100 MB and 1 MB of noise are counted exactly") {
  Connected c;
  const json line = c.server.execute("head -c 100000000 /dev/zero | tr '\\0' x", {{"maxOutput", 2000}});
  CHECK(field(fields_of(line), "stdoutBytes") == 100000000);
  CHECK(field(fields_of(line), "stdout").get<std::string>().size() < 3000);
  const json noise = c.server.execute("head -c 1000000 /dev/urandom");
  CHECK(field(fields_of(noise), "stdoutBytes") == 1000000);
  CHECK(text_of(noise).find("not UTF-8") != std::string::npos);
  CHECK(field(fields_of(c.server.execute("echo well")), "stdout") == "well\n");
}

TEST_CASE("faults: the remaining tree of a killed keeper is reported") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 777 & env -i sleep 777 & wait");
  eventually("the expected number of sleeps runs",
             [&] { return c.container.sh("pgrep -cfx 'sleep 777' || true") == "2"; });
  for (const int pid : c.container.pids_of(k_keeper)) {
    ::kill(pid, SIGKILL);
  }
  eventually("the process is lost", [&] { return field(fields_of(check(c.server, id)), "status") == "lost"; });
  const json lost = check(c.server, id);
  CAPTURE(lost.dump());
  CHECK_FALSE(fields_of(lost).contains("exitCode"));
  CHECK(field(fields_of(lost), "processCount") == 3);
  CHECK(text_of(lost).find("still run") != std::string::npos);
  control(c.server, id, "kill");
  eventually("the tree is gone", [&] { return c.container.sh("pgrep -cfx 'sleep 777' || true") == "0"; });
  CHECK(field(error_of(control(c.server, id, "kill")), "code") == "process_ended");
}

TEST_CASE("faults: stored output is bounded, finished first, drops are reported") {
  Connected c({"--init"}, "dockbridge-test:slim", {"--retention-size", "20"});
  const std::string finished =
      field(fields_of(c.server.execute("head -c 3000000 /dev/zero | tr '\\0' x")), "processId");
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(start_in_background(
        c.server, "head -c 9000000 /dev/zero | tr '\\0' x; echo; echo ready; while read x; do echo $x; done"));
    check(c.server, ids.back(), {{"waitFor", {{"pattern", "^ready$"}}}, {"timeout", 60}, {"tail", 1}});
  }
  const auto stored = [&] {
    return std::stol(c.container.sh("du -c -B1 /var/lib/dockbridge/state/0/*.out | tail -1 | cut -f1"));
  };
  eventually(
      "there is less", [&] { return stored() <= 20 * 1024 * 1024; }, seconds(60));
  eventually("the finished one has expired", [&] {
    const json result = check(c.server, finished);
    return field(result, "isError") == true && field(error_of(result), "code") == "process_expired";
  });
  for (const std::string& id : ids) {
    const json fields = fields_of(check(c.server, id, {{"maxOutput", 1000}}));
    CHECK(field(fields, "status") == "running");
    CHECK(field(fields, "stdoutBytes") == 9'000'007);
    CHECK(field(fields, "stdout").get<std::string>().ends_with("x\nready\n"));
    CHECK(text_of(check(c.server, id, {{"since", "0:0"}, {"maxOutput", 400000}})).find("more bytes") !=
          std::string::npos);
    c.server.call("send_input", {{"processId", id}, {"input", "more"}});
    CHECK(field(fields_of(check(c.server, id, {{"tail", 2}})), "stdout") == "ready\nmore\n");
  }
  CHECK(stored() <= 20 * 1024 * 1024);
}
