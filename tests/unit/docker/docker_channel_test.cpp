#include "docker/docker_channel.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "docker/tar.hpp"
#include "unit/docker/fake_engine.hpp"

using namespace dockbridge;
using docker::ContainerPolicy;
using docker::DockerChannel;
using nlohmann::json;
using sandbox::Condition;
using sandbox::ContainerRun;
using test::FakeEngine;

namespace {

struct ChannelWorld {
  FakeEngine engine;
  ContainerPolicy policy;
  Log log{-1, LogLevel::off, LogFormat::text};

  ChannelWorld() { policy.name = "box"; }

  Result<ContainerRun> prepare() { return DockerChannel(engine, policy, log).prepare(Deadline::after(seconds(10))); }
  ContainerRun prepared() {
    const auto run = prepare();
    REQUIRE(run);
    return *run;
  }
  Error refused() {
    const auto run = prepare();
    REQUIRE_FALSE(run);
    return run.error();
  }
  Result<Condition> condition(const ContainerRun& run) {
    return DockerChannel(engine, policy, log).condition(run, Deadline::after(seconds(10)));
  }
  Condition known_condition(const ContainerRun& run) {
    const auto found = condition(run);
    REQUIRE(found);
    return *found;
  }
};

}  // namespace

TEST_CASE("channel: a running container is used unchanged") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("abc", "now", "running");
  CHECK(world.prepared() == ContainerRun{"abc", "now"});
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box"});
}

TEST_CASE("channel: the shared workdir is found, unless it is disabled") {
  ChannelWorld world;
  json container = FakeEngine::container("abc", "now", "running");
  container["Mounts"] = {{{"Type", "volume"}, {"Name", "v"}, {"Source", "/var/v"}, {"Destination", "/app"}},
                         {{"Type", "bind"}, {"Source", "/home/me/other"}, {"Destination", "/app/other"}},
                         {{"Type", "bind"}, {"Source", "/home/me/tmp"}, {"Destination", "/app"}}};
  world.engine.description_of_container = container;
  const auto shared = world.prepared().shared;
  REQUIRE(shared);
  CHECK(shared->host_path == "/home/me/tmp");
  CHECK(shared->container_path == "/app");
  const std::vector<std::string> writable = {"/var/v", "/home/me/other", "/home/me/tmp"};
  CHECK(world.prepared().writable_mounts == writable);
  CHECK(shared->writable_mounts == writable);
  container["Mounts"][1]["RW"] = false;
  world.engine.description_of_container = container;
  CHECK(world.prepared().writable_mounts == std::vector<std::string>{"/var/v", "/home/me/tmp"});

  for (const char* same : {"/app/", "//app", "/app/.", "/app/x/.."}) {
    world.policy.workdir = same;
    CHECK(world.prepared().shared);
  }
  world.policy.workdir = "/elsewhere";
  CHECK_FALSE(world.prepared().shared);
  world.policy.workdir = "/app";
  world.policy.may_go_direct = false;
  CHECK_FALSE(world.prepared().shared);
  world.policy.may_go_direct = true;
  for (const json& mounts : {json(7), json::array({7}), json::array({{{"Type", "bind"}, {"Destination", "/app"}}})}) {
    world.engine.description_of_container->at("Mounts") = mounts;
    CHECK_FALSE(world.prepared().shared);
  }
}

TEST_CASE("channel: a stopped container is started, and the run is new") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  CHECK(world.prepared() == ContainerRun{"abc", "later"});
  CHECK(world.engine.was_asked("start abc"));
}

TEST_CASE("channel: without permission to start, the error names the command") {
  ChannelWorld world;
  world.policy.may_start = false;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  const Error error = world.refused();
  CHECK(error.code == ErrorCode::container_stopped);
  CHECK(error.message == "Container is not running: box");
  CHECK(error.next_step == "docker start box");
  CHECK_FALSE(world.engine.was_asked("start abc"));
}

TEST_CASE("channel: a container that stops right after its start is an error") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  world.engine.after_start = "exited";
  const Error error = world.refused();
  CHECK(error.code == ErrorCode::container_stopped);
  CHECK(error.next_step.find("docker logs box") != std::string::npos);
}

TEST_CASE("channel: a failed start reports the engine's reason") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  world.engine.start_error = Error{ErrorCode::engine_error, "port is taken"};
  CHECK(world.refused().message == "port is taken");
}

TEST_CASE("channel: a paused container is not changed, and the error names the command") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("abc", "now", "paused");
  const Error error = world.refused();
  CHECK(error.code == ErrorCode::container_paused);
  CHECK(error.next_step == "docker unpause box");
  CHECK(world.engine.asked.size() == 1);
}

TEST_CASE("channel: an absent container is created once from the image, then started") {
  ChannelWorld world;
  world.policy.image = "an-image";
  world.policy.workdir = "/work";
  world.policy.workspace = "/home/me/project";
  CHECK(world.prepared() == ContainerRun{"made", "later"});
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box", "has_image an-image", "create box", "inspect box",
                                                       "start made", "inspect made"});
  REQUIRE(world.engine.created);
  CHECK(world.engine.created->image == "an-image");
  CHECK(world.engine.created->workdir == "/work");
  CHECK(world.engine.created->workspace == "/home/me/project");

  world.engine.asked.clear();
  CHECK(world.prepared() == ContainerRun{"made", "later"});
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box"});
}

TEST_CASE("channel: a container created at the same time by another server is used") {
  ChannelWorld world;
  world.engine.is_created_by_another = true;
  SUBCASE("docker reports name_in_use") {
    world.engine.create_error = Error{ErrorCode::name_in_use, "the name is taken"};
  }
  SUBCASE("podman answers with 500") {
    world.engine.create_error =
        Error{ErrorCode::engine_error, "creating container storage: the name is in use (HTTP 500)"};
  }
  CHECK(world.prepared() == ContainerRun{"made", "later"});
}

TEST_CASE("channel: a name that was in use and is free again is retried") {
  ChannelWorld world;
  world.engine.create_error = Error{ErrorCode::name_in_use, "the name is taken"};
  int inspections = 0;
  world.engine.before_inspect = [&] {
    if (++inspections == 3) {
      world.engine.create_error.reset();
    }
  };
  CHECK(world.prepared() == ContainerRun{"made", "later"});
}

TEST_CASE("channel: a container being removed is waited for, then created again") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("old", "then", "removing");
  int inspections = 0;
  world.engine.before_inspect = [&] {
    if (++inspections == 3) {
      world.engine.description_of_container.reset();
    }
  };
  CHECK(world.prepared() == ContainerRun{"made", "later"});
  CHECK_FALSE(world.engine.was_asked("start old"));
}

TEST_CASE("channel: a removal that began before the start is waited for") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("old", "then", "exited");
  world.engine.start_error =
      Error{ErrorCode::engine_error, "container is marked for removal and cannot be started (HTTP 409)"};
  int inspections = 0;
  world.engine.before_inspect = [&] {
    ++inspections;
    if (inspections == 2) {
      world.engine.description_of_container = FakeEngine::container("old", "then", "removing");
    } else if (inspections == 4) {
      world.engine.description_of_container.reset();
      world.engine.start_error.reset();
    }
  };
  CHECK(world.prepared() == ContainerRun{"made", "later"});
}

TEST_CASE("channel: a start refused because another server started it is no error") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("abc", "then", "created");
  world.engine.start_error = Error{ErrorCode::engine_error, "container state improper (HTTP 500)"};
  int inspections = 0;
  world.engine.before_inspect = [&] {
    if (++inspections == 2) {
      world.engine.description_of_container = FakeEngine::container("abc", "now", "running");
    }
  };
  CHECK(world.prepared() == ContainerRun{"abc", "now"});
}

TEST_CASE("channel: a removal that does not end is an error with the docker rm command") {
  ChannelWorld world;
  SUBCASE("the removal is still running") {
    world.engine.description_of_container = FakeEngine::container("old", "then", "removing");
  }
  SUBCASE("the removal has failed") {
    world.engine.description_of_container = FakeEngine::container("old", "then", "dead");
    (*world.engine.description_of_container)["State"]["Dead"] = true;
  }
  const auto run = DockerChannel(world.engine, world.policy, world.log).prepare(Deadline::after(milliseconds(300)));
  REQUIRE_FALSE(run);
  CHECK(run.error().code == ErrorCode::container_stopped);
  CHECK(run.error().message == "Container is marked for removal: box");
  CHECK(run.error().next_step == "docker rm --force box, then call again");
  CHECK_FALSE(world.engine.was_asked("start old"));
}

TEST_CASE("channel: a run has its uid and the mounts that archives do not show") {
  ChannelWorld world;
  json container = FakeEngine::container("abc", "now", "running");
  container["Config"]["User"] = "";
  container["Mounts"] = {{{"Type", "volume"}, {"Destination", "/data"}},
                         {{"Type", "bind"}, {"Source", "/x"}, {"Destination", "/app"}},
                         {{"Type", "tmpfs"}, {"Destination", "/one/"}}};
  container["HostConfig"] = {{"Tmpfs", {{"/two", "exec"}}},
                             {"Mounts", {{{"Type", "tmpfs"}, {"Target", "/three/../four"}}}}};
  world.engine.description_of_container = container;
  CHECK(world.prepared().uid == 0U);
  CHECK(world.prepared().hidden == std::vector<std::string>{"/one", "/four", "/two"});
  for (const auto& [user, uid] : {std::pair<const char*, std::optional<std::uint64_t>>{"1000", 1000},
                                  {"1000:1001", 1000},
                                  {"0", 0},
                                  {"node", std::nullopt},
                                  {"1000x", std::nullopt},
                                  {":100", 0}}) {
    CAPTURE(user);
    world.engine.description_of_container->at("Config")["User"] = user;
    CHECK(world.prepared().uid == uid);
  }
  world.engine.description_of_container->at("HostConfig")["Tmpfs"] = nullptr;
  world.engine.description_of_container->at("HostConfig")["Mounts"] = nullptr;
  CHECK(world.prepared().hidden == std::vector<std::string>{"/one"});
  world.engine.description_of_container->at("Mounts") = {{{"Type", "bind"}}, {{"Type", 7}}};
  CHECK(world.prepared().hidden == std::vector<std::string>{"/"});
}

TEST_CASE("channel: a failed creation reports the engine's reason") {
  ChannelWorld world;
  world.engine.create_error = Error{ErrorCode::engine_error, "invalid mount"};
  CHECK(world.refused().message == "invalid mount");
  CHECK_FALSE(world.engine.was_asked("start made"));
}

TEST_CASE("channel: without container and image the error names both, and the commands") {
  ChannelWorld world;
  world.engine.image_exists = false;
  const Error error = world.refused();
  CHECK(error.code == ErrorCode::no_such_container);
  CHECK(error.message == "Container not found: box");
  CHECK(error.next_step.find(world.policy.image) != std::string::npos);
  CHECK(error.next_step.find("./run.sh") != std::string::npos);
  CHECK_FALSE(world.engine.created);
}

TEST_CASE("channel: without permission to create, the image is not looked up") {
  ChannelWorld world;
  world.policy.may_create = false;
  const Error error = world.refused();
  CHECK(error.code == ErrorCode::no_such_container);
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box"});
}

TEST_CASE("channel: a silent engine does not mean an absent container") {
  ChannelWorld world;
  world.engine.engine_error = Error{ErrorCode::no_engine, "cannot reach the engine", "Start it"};
  CHECK(world.refused().code == ErrorCode::no_engine);
  CHECK_FALSE(world.engine.created);
  const auto condition = world.condition({"abc", "now"});
  REQUIRE_FALSE(condition);
  CHECK(condition.error().code == ErrorCode::no_engine);
}

TEST_CASE("channel: a malformed description of a container is an error") {
  for (const char* text : {"{}", R"({"Id":"a"})", R"({"Id":"a","State":null})", R"({"Id":5,"State":{"StartedAt":"x"}})",
                           R"({"Id":"a","State":{}})", R"({"Id":"a","State":{"StartedAt":"x","Running":"yes"}})"}) {
    CAPTURE(text);
    ChannelWorld world;
    world.engine.description_of_container = json::parse(text);
    CHECK(world.refused().code == ErrorCode::engine_error);
    CHECK_FALSE(world.condition({"a", "x"}));
  }
}

TEST_CASE("channel: the condition of a run is that of its container") {
  ChannelWorld world;
  const ContainerRun run{"abc", "now"};
  for (const auto& [status, condition] : {std::pair{"running", Condition::running},
                                          {"removing", Condition::gone},
                                          {"paused", Condition::paused},
                                          {"exited", Condition::stopped},
                                          {"dead", Condition::stopped}}) {
    CAPTURE(status);
    world.engine.description_of_container = FakeEngine::container("abc", "now", status);
    CHECK(world.known_condition(run) == condition);
  }
}

TEST_CASE("channel: a run is gone when its container is removed, replaced or restarted") {
  ChannelWorld world;
  const ContainerRun run{"abc", "now"};
  CHECK(world.known_condition(run) == Condition::gone);
  world.engine.description_of_container = FakeEngine::container("other", "now", "running");
  CHECK(world.known_condition(run) == Condition::gone);
  world.engine.description_of_container = FakeEngine::container("other", "now", "exited");
  CHECK(world.known_condition(run) == Condition::gone);
  world.engine.description_of_container = FakeEngine::container("abc", "later", "running");
  CHECK(world.known_condition(run) == Condition::gone);
  world.engine.description_of_container = FakeEngine::container("abc", "later", "paused");
  CHECK(world.known_condition(run) == Condition::gone);
}

TEST_CASE("channel: a query of the condition neither starts nor creates a container") {
  ChannelWorld world;
  world.engine.description_of_container = FakeEngine::container("abc", "now", "exited");
  CHECK(world.known_condition({"abc", "now"}) == Condition::stopped);
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box"});
}

TEST_CASE("channel: programs and files go to the run that was found, not to the name") {
  ChannelWorld world;
  DockerChannel channel(world.engine, world.policy, world.log);
  const ContainerRun run{"abc", "now"};
  const auto deadline = Deadline::after(seconds(10));
  CHECK_FALSE(channel.open(run, {"/agent", "session"}, deadline));
  CHECK(channel.place(run, "/tmp", {{"agent-1", 0755, "content"}}, deadline));
  CHECK(world.engine.asked == std::vector<std::string>{"exec abc /agent", "put_archive abc /tmp"});
}

TEST_CASE("channel: files are placed with their modes and an owner probe") {
  ChannelWorld world;
  DockerChannel channel(world.engine, world.policy, world.log);
  CHECK(channel.place({"abc", "now"}, "/", {{"x/", 01777}, {"x/agent-1", 0755, "content"}},
                      Deadline::after(seconds(10))));
  CHECK(world.engine.archive ==
        docker::make_tar({{"x/", 01777, {}}, {"x/.owner", 0444, {}, 1}, {"x/agent-1", 0755, "content"}}));
}
