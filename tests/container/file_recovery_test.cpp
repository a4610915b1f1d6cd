#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <future>

#include "support/field.hpp"
#include "support/file_tools.hpp"

// Sets of edits that fail or are killed: all files are changed, or none.

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr int k_count = 60;

void make_set(const Files& files) {
  (void)files.sh(
      fmt::format("mkdir /app/set && cd /app/set && for i in $(seq 1 {}); do echo 'value 0' > $i; done", k_count));
  for (int i = 1; i <= k_count; ++i) {
    REQUIRE(done(files.tools.read(fmt::format("set/{}", i))));
  }
}

/// Edits all files of the set, and sends a signal to the workers as soon as the first file is changed. Returns the
/// call.
int edit_until_signalled(Files& files, int value, const char* signal) {
  // A check from outside the container would take longer than the edits.
  const std::string script = fmt::format(
      "workers=$(grep -l '^{}' /proc/[0-9]*/comm | cut -d/ -f3); touch /tmp/ready; "
      "until read -r line < /app/set/1 && [ \"$line\" = 'value {}' ]; do :; done; kill -{} $workers; rm /tmp/ready",
      k_file_worker, value + 1, signal);
  auto watcher = std::async(std::launch::async, [&] { return files.sh(script); });
  eventually("the files are watched", [&] { return files.sh("ls /tmp/ready 2>/dev/null || true") == "/tmp/ready"; });
  json edits = json::array();
  for (int i = 1; i <= k_count; ++i) {
    edits.push_back({{"filePath", fmt::format("set/{}", i)},
                     {"oldString", fmt::format("value {}", value)},
                     {"newString", fmt::format("value {}", value + 1)}});
  }
  const int call = files.server.start_call("file_edit", {{"edits", edits}});
  (void)watcher.get();
  return call;
}

}  // namespace

TEST_CASE("edit: a worker that is killed during a set leaves all files old or all new") {
  Files files;
  make_set(files);
  int value = 0;
  int rolled_back = 0;
  for (int round = 0; round < 40; ++round) {
    const int call = edit_until_signalled(files, value, "KILL");
    const json answer = field(files.server.receive_answer(call), "result");
    // If an idle worker was killed too, the next call may fail.
    eventually("a file can be read", [&] { return !files.tools.read("set/1").value("isError", false); });
    const std::string contents = files.sh("cat /app/set/* | sort -u");
    const std::string before = fmt::format("value {}", value);
    const std::string after = fmt::format("value {}", value + 1);
    REQUIRE((contents == before || contents == after));
    CHECK((contents == after || answer.value("isError", false)));
    rolled_back += contents == before ? 1 : 0;
    value += contents == after ? 1 : 0;
  }
  CHECK(rolled_back > 0);  // otherwise nothing was tested
  CHECK(files.sh("find /app -name '.dockbridge-*'").empty());
}

TEST_CASE("edit: a set of a worker that dies after its session is rolled back") {
  Files files;
  make_set(files);
  std::string stopped;
  int call = 0;
  for (int round = 0; round < 10 && stopped != "value 0\nvalue 1"; ++round) {
    (void)files.sh("for i in $(seq 1 60); do echo 'value 0' > /app/set/$i; done");
    call = edit_until_signalled(files, 0, "STOP");
    stopped = files.sh("cat /app/set/* | sort -u");
    if (stopped != "value 0\nvalue 1") {  // the worker was faster
      for (const int pid : files.container.pids_of(k_file_worker)) {
        ::kill(pid, SIGCONT);
      }
      (void)files.server.receive_answer(call);
    }
  }
  REQUIRE(stopped == "value 0\nvalue 1");
  const auto workers = files.container.pids_of(k_file_worker);
  for (const int pid : files.container.pids_of(k_session)) {
    ::kill(pid, SIGKILL);
  }
  const json answer = field(files.server.receive_answer(call), "result");
  CHECK(field(answer, "isError") == true);
  CHECK(says(answer, "Read all of the files"));
  // The next session starts while the worker still holds its journal.
  (void)files.server.call("execute_command", {{"command", "true"}}, seconds(60));
  CHECK(files.sh("cat /app/set/* | sort -u") == stopped);
  for (const int pid : workers) {
    ::kill(pid, SIGKILL);
  }
  eventually("all files are old", [&] { return files.sh("cat /app/set/* | sort -u") == "value 0"; });
}

TEST_CASE("edit: a set that does not fit on the disk leaves every file as it was") {
  Files files({"--init", "--tmpfs", "/small:size=2m"});
  (void)files.sh("cd /small && head -c 1200000 /dev/zero | tr '\\0' A > a && printf '\\nkeep\\n' >> a && echo b > b");
  REQUIRE(done(files.tools.read("/small/a")));
  REQUIRE(done(files.tools.read("/small/b")));
  const std::string before = files.sh("md5sum /small/a /small/b");
  // After the first edit, there is no space for the second, nor for both contents of the first.
  const json edits = {{{"filePath", "/small/a"}, {"oldString", std::string(1'200'000, 'A')}, {"newString", "x"}},
                      {{"filePath", "/small/b"}, {"oldString", "b"}, {"newString", std::string(1'000'000, 'B')}}};
  const json failed = files.server.call("file_edit", {{"edits", edits}}, seconds(60));
  CHECK(error_code(failed) == "disk_full");
  CHECK(says(failed, "no file was changed"));
  CHECK(files.sh("md5sum /small/a /small/b") == before);
}
