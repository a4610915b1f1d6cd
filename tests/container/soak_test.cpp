#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "support/container.hpp"
#include "support/field.hpp"
#include "support/full.hpp"
#include "support/program.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

struct Footprint {
  long resident_kib = 0;
  long descriptors = 0;
};

Footprint footprint(int pid) {
  Footprint print;
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) {
      print.resident_kib = std::stol(line.substr(6));
    }
  }
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    ++print.descriptors;
  }
  return print;
}

}  // namespace

TEST_CASE("soak: many short commands cause no error, growth or zombie") {
  const int commands = full_run() ? 10'000 : 1'000;
  const Container container("dockbridge-test:slim");  // without init: no other process reaps orphans
  Server server({"-c", container.name(), "--log-level", "warn"});
  server.initialize();
  const auto run_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const json result = server.execute(fmt::format("echo {}; (exit {})", i, i % 256));
      REQUIRE(field(result, "structuredContent", "exitCode") == i % 256);
      REQUIRE(field(result, "structuredContent", "stdout") == fmt::format("{}\n", i));
    }
  };
  run_some(200);
  const auto sessions = container.pids_of("dockbridge-sess");
  REQUIRE(sessions.size() == 1);
  const Footprint server_before = footprint(server.pid());
  const Footprint session_before = footprint(sessions.front());
  run_some(commands);
  const auto check_growth = [](const std::string& process, const Footprint& before, const Footprint& after) {
    CAPTURE(process);
    CHECK((!k_memory_is_meaningful || after.resident_kib - before.resident_kib < 1024));
    CHECK(after.descriptors - before.descriptors <= 2);
  };
  check_growth("server", server_before, footprint(server.pid()));
  check_growth("session", session_before, footprint(sessions.front()));
  CHECK(container.pids_of("dockbridge-keep").size() <= 4);
  CHECK(container.zombies() == 0);
  // The data of finished processes is bounded too. The session deletes expired ones after every 500.
  eventually(
      "old records are gone",
      [&] { return std::stoi(container.sh("ls /var/lib/dockbridge/state/0 | grep -c '^proc_[^.]*$'")) <= 1500; },
      seconds(60));
}
