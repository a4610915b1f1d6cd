#include "sandbox/trusted_runs.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::ContainerRun;
using sandbox::TrustedRuns;

namespace {

namespace fs = std::filesystem;

const std::string k_agent = "agent-1234";
const std::string k_path = "/.dockbridge/agent-1234";

ContainerRun run_of(const std::string& id = "abc123", const std::string& started_at = "2026-01-01T00:00:00Z") {
  ContainerRun run;
  run.id = id;
  run.started_at = started_at;
  return run;
}

}  // namespace

TEST_CASE("trusted runs: a record is valid for its run and agent version only") {
  const TemporaryDirectory home;
  const TrustedRuns runs(home / "state/dockbridge/trusted-runs");
  CHECK_FALSE(runs.find(run_of(), k_agent));
  runs.add(run_of(), k_path);
  CHECK(runs.find(run_of(), k_agent) == k_path);
  CHECK_FALSE(runs.find(run_of(), "agent-5678"));
  CHECK_FALSE(runs.find(run_of("abc124"), k_agent));
  CHECK_FALSE(runs.find(run_of("abc123", "2026-01-01T00:00:01Z"), k_agent));

  runs.add(run_of("abc123", "2026-01-02T00:00:00Z"), k_path);
  CHECK(runs.find(run_of("abc123", "2026-01-02T00:00:00Z"), k_agent) == k_path);
  CHECK_FALSE(runs.find(run_of(), k_agent));
}

TEST_CASE("trusted runs: a record that others could have written is ignored") {
  const TemporaryDirectory home;
  const TrustedRuns runs(home / "trusted-runs");
  runs.add(run_of(), k_path);
  const std::string file = home / ("trusted-runs/abc123." + k_agent);
  REQUIRE(runs.find(run_of(), k_agent));

  ContainerRun shared = run_of();
  SUBCASE("the container, which has the directory") {
    shared.writable_mounts = {home.path()};
  }
  SUBCASE("the container, through a link") {
    fs::create_directory(home / "mount");
    fs::rename(home / "trusted-runs", home / "mount/runs");
    fs::create_directory_symlink(home / "mount/runs", home / "trusted-runs");
    REQUIRE(runs.find(shared, k_agent));
    shared.writable_mounts = {home / "mount"};
  }
  SUBCASE("everybody") {
    REQUIRE(::chmod(file.c_str(), 0666) == 0);
  }
  SUBCASE("another user") {
    REQUIRE(::geteuid() == 0);  // only root can change the owner
    REQUIRE(::chown(file.c_str(), 1000, 1000) == 0);
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
  }
  CHECK_FALSE(runs.find(shared, k_agent));
}

TEST_CASE("trusted runs: a month-old record is removed when another is added") {
  const TemporaryDirectory home;
  const TrustedRuns runs(home.path());
  runs.add(run_of("aa"), k_path);
  runs.add(run_of("bb"), k_path);
  fs::last_write_time(home / ("aa." + k_agent), fs::file_time_type::clock::now() - std::chrono::hours(31 * 24));
  runs.add(run_of("cc"), k_path);
  CHECK_FALSE(fs::exists(home / ("aa." + k_agent)));
  CHECK(runs.find(run_of("bb"), k_agent));
}

TEST_CASE("trusted runs: old files that are no records are kept") {
  const TemporaryDirectory home;
  std::ofstream(home / "notes") << "x";
  fs::create_directory(home / "directory.agent-1");
  for (const char* name : {"notes", "directory.agent-1"}) {
    fs::last_write_time(home / name, fs::file_time_type::clock::now() - std::chrono::hours(31 * 24));
  }
  TrustedRuns(home.path()).add(run_of(), k_path);
  CHECK(fs::exists(home / "notes"));
  CHECK(fs::exists(home / "directory.agent-1"));
}

TEST_CASE("trusted runs: nothing is recorded in a mount that had to be created") {
  const TemporaryDirectory home;
  const TrustedRuns runs(home / "mount/trusted-runs");
  ContainerRun shared = run_of();
  shared.writable_mounts = {home / "mount"};
  runs.add(shared, k_path);
  CHECK_FALSE(runs.find(run_of(), k_agent));
}

TEST_CASE("trusted runs: nothing is written or removed where the container can redirect it") {
  const TemporaryDirectory home;
  fs::create_directories(home / "mount");
  fs::create_directory(home / "elsewhere");
  const std::string old = home / "elsewhere/old.agent-1";
  std::ofstream(old) << "x";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(31 * 24));
  ContainerRun shared = run_of();
  shared.writable_mounts = {home / "mount"};
  std::string directory = home / "mount/trusted-runs";
  SUBCASE("a link to another directory") {
    fs::create_directory_symlink(home / "elsewhere", directory);
  }
  SUBCASE("a link above the directory") {
    fs::create_directory_symlink(home / "elsewhere", home / "mount/state");
    directory = home / "mount/state/trusted-runs";
  }
  SUBCASE("no directory yet") {}
  TrustedRuns(directory).add(shared, k_path);
  CHECK(fs::exists(old));
  CHECK(std::distance(fs::directory_iterator(home / "elsewhere"), {}) == 1);
}

TEST_CASE("trusted runs: nothing is recorded without a usable directory or container id") {
  const TemporaryDirectory home;
  std::ofstream(home / "file") << "x";
  for (const std::string& directory : {std::string(), std::string(home / "file/runs")}) {
    const TrustedRuns runs(directory);
    runs.add(run_of(), k_path);
    CHECK_FALSE(runs.find(run_of(), k_agent));
  }
  const TrustedRuns runs(home / "runs");
  runs.add(run_of("../file"), k_path);
  CHECK_FALSE(runs.find(run_of("../file"), k_agent));
  CHECK_FALSE(fs::exists(home / "runs"));
}
