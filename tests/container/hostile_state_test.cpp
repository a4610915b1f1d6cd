// Attacks of container processes on the agent's state directory.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/file_tools.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr const char* k_state = "/var/lib/dockbridge/state/0";

/// A shell command that writes a number, little-endian, into a file at `offset`.
std::string poke(const std::string& file, int offset, std::uint64_t number) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes += fmt::format("\\{:03o}", (number >> shift) & 0xFFU);
  }
  return fmt::format("printf '{}' | dd of={} bs=1 seek={} conv=notrunc status=none", bytes, file, offset);
}

/// Offsets of the numbers in a spool's header.
constexpr int k_head_cap = 8;
constexpr int k_tail_cap = 16;
constexpr int k_total = 24;
constexpr int k_head_end = 32;
constexpr int k_tail_start = 40;

/// A process that has ended, and the file with its output.
struct Ended {
  std::string id;
  std::string spool;
};

Ended run_one(Server& server) {
  const json fields = fields_of(server.execute("echo needle"));
  return {field(fields, "processId"), field(fields, "stdoutFile")};
}

}  // namespace

TEST_CASE("hostile state: a spool with a total of 2^64-1 does not kill the session") {
  Connected c;
  const Ended ended = run_one(c.server);
  const auto session = c.container.pids_of(k_session);
  for (const std::uint64_t total : {~std::uint64_t{0}, std::uint64_t{1} << 63, (std::uint64_t{1} << 60) + 1}) {
    CAPTURE(total);
    (void)c.container.sh(poke(ended.spool, k_total, total) + " && " + poke(ended.spool, k_tail_start, total));
    CHECK(field(error_of(check(c.server, ended.id)), "code") == "spool_damaged");
    CHECK(field(error_of(check(c.server, ended.id, {{"tail", 3}})), "code") == "spool_damaged");
    CHECK(field(error_of(check(c.server, ended.id, {{"grep", "x"}})), "code") == "spool_damaged");
  }
  CHECK(c.container.pids_of(k_session) == session);
  CHECK(field(fields_of(c.server.execute("echo well")), "stdout") == "well\n");
}

TEST_CASE("hostile state: a grep over a forged spool of 4 TB gets a reply") {
  Connected c;
  const Ended ended = run_one(c.server);
  constexpr std::uint64_t k_size = std::uint64_t{4} << 40;
  std::string forge = "truncate -s " + std::to_string(k_size) + " " + ended.spool;
  SUBCASE("with equally large caps") {
    forge += " && " + poke(ended.spool, k_head_cap, k_size / 2) + " && " + poke(ended.spool, k_tail_cap, k_size / 2);
  }
  SUBCASE("with unchanged caps") {}
  forge += " && " + poke(ended.spool, k_total, k_size) + " && " + poke(ended.spool, k_head_end, k_size / 2) + " && " +
           poke(ended.spool, k_tail_start, k_size / 2);
  (void)c.container.sh(forge);
  CHECK(field(error_of(check(c.server, ended.id, {{"grep", "x"}})), "code") == "spool_damaged");
  CHECK(field(fields_of(c.server.execute("echo well")), "stdout") == "well\n");
}

TEST_CASE("hostile state: FIFOs in place of the file tools' logs block no tool") {
  Files files;
  REQUIRE(done(files.tools.write("file", "one\n")));
  for (const char* name : {"files_seen", "files_changed", "recent.contents", "older.contents", "lock", "expired"}) {
    CAPTURE(name);
    (void)files.sh(fmt::format("cd {} && rm -f {} && mkfifo {}", k_state, name, name));
    CHECK(done(files.tools.read("file")));
    CHECK(done(files.tools.write("file", "two\n")));
    CHECK(done(files.tools.edit("file", "two", "three")));
  }
  CHECK(files.sh("cat /app/file") == "three");
}

TEST_CASE("hostile state: forged records and screens do not end the session") {
  Connected c;
  const Ended ended = run_one(c.server);
  const std::string typed = start_in_background(c.server, "cat", {{"tty", true}});
  (void)check(c.server, typed);
  control(c.server, typed, "kill");
  const auto session = c.container.pids_of(k_session);
  const auto forge_record = [&](const std::string& fields) {
    (void)c.container.sh(fmt::format("printf '\\n{{\"id\":\"{0}\",{1}}}\\n' >> {2}/{0}", ended.id, fields, k_state));
  };
  for (const char* fields : {R"("startedAtMs":-9223372036854775808)", R"("pid":1,"keeper":"../../../run/x")",
                             R"("end":1,"endCode":1e300)", R"("end":1,"endedUptimeMs":9223372036854775807)"}) {
    CAPTURE(fields);
    forge_record(fields);
    CHECK(field(error_of(check(c.server, ended.id)), "code") == "record_damaged");
    CHECK(done(c.server.call("check_process", json::object())));
  }
  const std::string screen = fmt::format("{}/{}.screen", k_state, typed);
  for (const char* forged : {R"({"columns":99999,"rows":1,"cursor":[0,0],"cursorVisible":true,"alternate":false})",
                             R"({"columns":"x"})", "[]"}) {
    CAPTURE(forged);
    (void)c.container.sh(fmt::format("printf '%s\\nx\\n' '{}' > {}", forged, screen));
    CHECK(field(error_of(check(c.server, typed, {{"screen", true}})), "code") == "no_screen");
  }
  (void)c.container.sh("(printf '{\"a\":\"'; head -c 200000 /dev/zero | tr '\\0' x; printf '\"}\\nx\\n') > " + screen);
  CHECK(field(error_of(check(c.server, typed, {{"screen", true}})), "code") == "no_screen");
  CHECK(c.container.pids_of(k_session) == session);
}

TEST_CASE("keeper: the exit code is recorded even if the state disk is full") {
  Container container("dockbridge-test:slim", {"--init", "--tmpfs", "/var/lib/dockbridge/state:size=2m,mode=755"});
  std::vector<std::string> ids;
  {
    Server server({"-c", container.name()});
    server.initialize();
    // Enough processes that their end lines do not fit into the rest of the journal's last block.
    for (int i = 0; i < 40; ++i) {
      ids.push_back(start_in_background(server, fmt::format("read x; exit {}", i + 1)));
    }
    (void)container.sh(fmt::format("dd if=/dev/zero of={}/fill bs=4096 2>/dev/null || true", k_state));
    REQUIRE(container.sh("df --output=avail /var/lib/dockbridge/state | tail -1 | tr -d ' '") == "0");
    for (const std::string& id : ids) {
      server.call("send_input", {{"processId", id}, {"input", "go"}});
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      CHECK(field(fields_of(check(server, ids[i], {{"timeout", 20}})), "exitCode") == i + 1);
    }
  }
  eventually("the first session is gone", [&] { return container.pids_of(k_session).empty(); });
  Server server({"-c", container.name()});
  server.initialize();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const json result = check(server, ids[i]);
    CAPTURE(text_of(result));
    CHECK(field(fields_of(result), "status") == "completed");
    CHECK(field(fields_of(result), "exitCode") == i + 1);
  }
}

TEST_CASE("keeper: an end that cannot be recorded is retried until there is space") {
  Container container("dockbridge-test:slim", {"--init", "--tmpfs", "/var/lib/dockbridge/state:size=2m,mode=755"});
  std::string id;
  {
    Server server({"-c", container.name()});
    server.initialize();
    id = start_in_background(server, "read x; exit 7");
    // Free the reserved space and fill the disk.
    (void)container.sh(
        fmt::format("cd {} && for f in journal_*; do head -c $((4096 - $(stat -c %s $f))) /dev/zero >> $f; "
                    "truncate -s $(stat -c %s $f) $f; done; dd if=/dev/zero of=fill bs=4096 2>/dev/null || true",
                    k_state));
    server.call("send_input", {{"processId", id}, {"input", "go"}});
    CHECK(field(fields_of(check(server, id, {{"timeout", 20}})), "exitCode") == 7);
  }
  eventually("the first session is gone", [&] { return container.pids_of(k_session).empty(); });
  Server server({"-c", container.name()});
  server.initialize();
  CHECK(container.sh(fmt::format("grep -c endCode {}/{} || true", k_state, id)) == "0");
  CHECK(field(fields_of(check(server, id)), "exitCode") == 7);
  (void)container.sh(fmt::format("rm {}/fill", k_state));
  eventually("it is recorded",
             [&] { return container.sh(fmt::format("grep -c endCode {}/{} || true", k_state, id)) != "0"; });
  CHECK(field(fields_of(check(server, id)), "exitCode") == 7);
}
