#include "docker/file_trust.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>

#include "docker/tar.hpp"
#include "unit/docker/fake_engine.hpp"

using namespace dockbridge;
using docker::examine_file;
using sandbox::ContainerRun;
using sandbox::Trust;
using test::FakeEngine;
using Verdict = Trust::Verdict;

namespace {

const std::string k_agent(5000, 'a');
constexpr std::uint64_t k_probe_uid = 1;

struct Item {
  std::string name;
  unsigned mode = 0755;
  std::uint64_t uid = 0;
  std::string content{};
  char type = '\0';  ///< as the name says
};

/// The file that shows whether the engine reports owners.
Item probe_in(const std::string& folder, std::uint64_t uid = k_probe_uid) {
  return {folder + "/.owner", 0444, uid};
}

/// An archive of these files, with any owner.
std::string archive_of(const std::vector<Item>& items) {
  std::string tar;
  for (const Item& item : items) {
    std::string part = docker::make_tar({{item.name, item.mode, item.content}});
    part.resize(part.size() - 1024);
    const auto put = [&](std::size_t at, const std::string& text) { part.replace(at, text.size(), text); };
    put(108, fmt::format("{:07o}", item.uid));
    if (item.type != '\0') {
      part[156] = item.type;
    }
    put(148, "        ");
    const unsigned sum = std::accumulate(part.begin(), part.begin() + 512, 0U,
                                         [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
    put(148, fmt::format("{:06o}", sum) + '\0');
    tar += part;
  }
  return tar + std::string(1024, '\0');
}

struct World {
  FakeEngine engine;
  ContainerRun run{"abc", "now"};

  World() { run.uid = 0; }

  Trust examine(const std::string& path) {
    engine.existing.insert(path);
    const auto trust = examine_file(engine, run, path, k_agent, Deadline::after(seconds(10)));
    REQUIRE(trust);
    return *trust;
  }
};

const std::string k_path = "/.dockbridge/agent-1";

}  // namespace

TEST_CASE("file trust: one archive of / is enough for the agent") {
  World world;
  for (const char* slash : {"", "/"}) {  // podman sends names without a final slash
    CAPTURE(slash);
    world.engine.asked.clear();
    world.engine.sent = 0;
    world.engine.archives["//"] = archive_of({{"/"},
                                              {".a", 0644, 0, "another file"},
                                              {std::string("/.dockbridge") + slash, 0755, 0, "", '5'},
                                              probe_in("/.dockbridge"),
                                              {"/.dockbridge/agent-0", 0755, 0, std::string(90'000, 'o')},
                                              {"/.dockbridge/agent-1", 0755, 0, k_agent},
                                              {"/zzz", 0644, 0, std::string(900'000, 'z')}});
    CHECK(world.examine(k_path).verdict == Verdict::trusted);
    CHECK(world.engine.asked == std::vector<std::string>{"is_known_absent " + k_path, "get_archive //"});
    CHECK(world.engine.sent < 110'000);
  }
}

TEST_CASE("file trust: the agent's owner, mode, type and content must be right") {
  World world;
  const auto verdict = [&](Item agent) {
    agent.name = ".dockbridge/agent-1";
    world.engine.archives["//"] = archive_of({{"/"}, {".dockbridge/"}, probe_in(".dockbridge"), agent});
    return world.examine(k_path).verdict;
  };
  CHECK(verdict({"", 0755, 0, k_agent}) == Verdict::trusted);
  CHECK(verdict({"", 0755, 1000, k_agent}) == Verdict::replaceable);
  CHECK(verdict({"", 0775, 0, k_agent}) == Verdict::replaceable);
  CHECK(verdict({"", 0757, 0, k_agent}) == Verdict::replaceable);
  CHECK(verdict({"", 0644, 0, k_agent}) == Verdict::replaceable);
  CHECK(verdict({"", 0755, 0, k_agent + "a"}) == Verdict::replaceable);
  CHECK(verdict({"", 0755, 0, k_agent.substr(1) + "b"}) == Verdict::replaceable);
  CHECK(verdict({"", 0755, 0, ""}) == Verdict::replaceable);
  CHECK(verdict({"", 0755, 0, "", '2'}) == Verdict::replaceable);
}

TEST_CASE("file trust: every directory on the path must be closed to others") {
  World world;
  const auto examine = [&](const Item& top, const Item& folder) {
    world.engine.archives["//"] =
        archive_of({top, folder, probe_in(".dockbridge"), {".dockbridge/agent-1", 0755, 0, k_agent}});
    return world.examine(k_path);
  };
  CHECK(examine({"/"}, {".dockbridge/"}).verdict == Verdict::trusted);
  CHECK(examine({"/", 0555}, {".dockbridge/", 0700}).verdict == Verdict::trusted);
  const Trust foreign = examine({"/"}, {".dockbridge/", 0755, 1000});
  CHECK(foreign.verdict == Verdict::unsafe);
  CHECK(foreign.reason == "/.dockbridge belongs to uid 1000");
  const Trust open = examine({"/", 01777}, {".dockbridge/"});
  CHECK(open.verdict == Verdict::unsafe);
  CHECK(open.reason == "/ is writable by other users");
  CHECK(examine({"/"}, {".dockbridge/", 01777}).verdict == Verdict::unsafe);
  CHECK(examine({"/"}, {".dockbridge/", 0770}).verdict == Verdict::unsafe);
  CHECK(examine({"/", 0755, 1000}, {".dockbridge/"}).verdict == Verdict::unsafe);
  CHECK(examine({"/"}, {".dockbridge/", 0777, 0, "", '2'}).verdict == Verdict::unsafe);
}

TEST_CASE("file trust: only root and the user that the agent runs as are trusted") {
  World world;
  world.engine.archives["//"] = archive_of(
      {{"/"}, {".dockbridge/", 0755, 1000}, probe_in(".dockbridge"), {".dockbridge/agent-1", 0755, 1000, k_agent}});
  world.run.uid = 1000;
  CHECK(world.examine(k_path).verdict == Verdict::trusted);
  world.run.uid = 1001;
  CHECK(world.examine(k_path).verdict == Verdict::unsafe);
  world.run.uid.reset();
  CHECK(world.examine(k_path).verdict == Verdict::unsafe);
}

TEST_CASE("file trust: an engine that reports one owner for everything is noticed") {
  World world;
  const auto verdict = [&](std::uint64_t everybody, std::uint64_t probe) {
    world.engine.archives["//"] = archive_of({{"/", 0755, everybody},
                                              {".dockbridge/", 0755, everybody},
                                              probe_in(".dockbridge", probe),
                                              {".dockbridge/agent-1", 0755, everybody, k_agent}});
    return world.examine(k_path).verdict;
  };
  CHECK(verdict(0, k_probe_uid) == Verdict::trusted);
  CHECK(verdict(0, 0) == Verdict::unattributed);
  CHECK(verdict(1000, 1000) == Verdict::unattributed);
  world.run.uid = k_probe_uid;
  CHECK(verdict(k_probe_uid, k_probe_uid) == Verdict::unattributed);
  world.engine.archives["//"] = archive_of(
      {{"/"}, {".dockbridge/"}, probe_in(".dockbridge", 0), {".dockbridge/agent-1", 0755, 0, "another content"}});
  CHECK(world.examine(k_path).verdict == Verdict::replaceable);
  world.engine.archives["//"] = archive_of(
      {{"/"}, {".dockbridge/", 01777}, probe_in(".dockbridge", 0), {".dockbridge/agent-1", 0755, 0, k_agent}});
  CHECK(world.examine(k_path).verdict == Verdict::unsafe);
  world.engine.archives["//"] = archive_of({{"/"}, {".dockbridge/"}, {".dockbridge/agent-1", 0755, 0, k_agent}});
  CHECK(world.examine(k_path).verdict == Verdict::replaceable);  // no probe
}

TEST_CASE("file trust: a directory late in an archive is read from an archive of its own") {
  World world;
  const Item much{"app/.cache", 0644, 0, std::string(9'000'000, 'c')};
  world.engine.archives["//"] = archive_of({{"/"}, {"bin/"}});
  world.engine.archives["/app"] = archive_of({{"app/"}, much, {"app/.dockbridge-agent/"}});
  world.engine.archives["/app/.dockbridge-agent"] = archive_of(
      {{".dockbridge-agent/"}, probe_in(".dockbridge-agent"), {".dockbridge-agent/agent-1", 0755, 0, k_agent}});
  CHECK(world.examine("/app/.dockbridge-agent/agent-1").verdict == Verdict::trusted);
  CHECK(world.engine.asked == std::vector<std::string>{"is_known_absent /app/.dockbridge-agent/agent-1",
                                                       "get_archive //", "get_archive /app",
                                                       "get_archive /app/.dockbridge-agent"});
}

TEST_CASE("file trust: a file of the same name elsewhere is not the agent") {
  World world;
  world.engine.archives["//"] =
      archive_of({{"/"}, {".dockbridge/"}, probe_in(".dockbridge"), {"agent-1", 0755, 0, k_agent}});
  CHECK(world.examine(k_path).verdict == Verdict::replaceable);
  // The archive of a link's target, in place of the link's.
  world.engine.archives["//"] = archive_of({{"/"}, {"bin/"}});
  world.engine.archives["/.dockbridge"] = archive_of({{"target/"}, {"target/agent-1", 0755, 0, k_agent}});
  const auto trust = examine_file(world.engine, world.run, k_path, k_agent, Deadline::after(seconds(10)));
  REQUIRE_FALSE(trust);
  CHECK(trust.error().code == ErrorCode::engine_error);
}

TEST_CASE("file trust: nothing beneath a mount that archives do not show is examined") {
  World world;
  world.engine.archives["//"] =
      archive_of({{"/"}, {".dockbridge/"}, probe_in(".dockbridge"), {".dockbridge/agent-1", 0755, 0, k_agent}});
  world.run.hidden = {"/tmp", "/.dockbridge2", "/.dockbridge/agent"};
  CHECK(world.examine(k_path).verdict == Verdict::trusted);
  for (const char* mount : {"/", "/.dockbridge", "/.dockbridge/agent-1"}) {
    CAPTURE(mount);
    world.engine.asked.clear();
    world.run.hidden = {"/tmp", mount};
    CHECK(world.examine(k_path).verdict == Verdict::unsafe);
    CHECK(world.engine.asked.empty());
  }
}

TEST_CASE("file trust: an absent file is replaceable only in directories closed to others") {
  World world;
  const auto examine = [&](const std::string& path) {
    const auto trust = examine_file(world.engine, world.run, path, k_agent, Deadline::after(seconds(10)));
    REQUIRE(trust);
    return trust->verdict;
  };
  CHECK(examine(k_path) == Verdict::replaceable);
  CHECK(world.engine.asked == std::vector<std::string>{"is_known_absent " + k_path});
  world.engine.archives["//"] = archive_of({{"/"}});
  world.engine.archives["/app"] = archive_of({{"app/", 0755, 1000}});
  CHECK(examine("/app/.dockbridge-agent/agent-1") == Verdict::unsafe);
  world.engine.archives["/app"] = archive_of({{"app/"}});
  CHECK(examine("/app/.dockbridge-agent/agent-1") == Verdict::replaceable);
}

TEST_CASE("file trust: an archive that is damaged or empty is an error") {
  World world;
  world.engine.existing = {k_path};
  for (const std::string& bytes : {std::string(2000, 'x'), std::string(1024, '\0'), std::string()}) {
    world.engine.archives["//"] = bytes;
    const auto trust = examine_file(world.engine, world.run, k_path, k_agent, Deadline::after(seconds(10)));
    REQUIRE_FALSE(trust);
    CHECK(trust.error().code == ErrorCode::engine_error);
  }
}
