#include "docker/docker_channel.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "docker/tar.hpp"

using namespace dockbridge;
using docker::ContainerPolicy;
using docker::ContainerSpec;
using docker::DockerChannel;
using nlohmann::json;
using sandbox::Condition;
using sandbox::ContainerRun;

namespace {

/// An engine with at most one container, and a record of what was asked of it.
class FakeEngine : public docker::Engine {
 public:
  [[nodiscard]] std::string description() const override { return "fake"; }
  Result<std::string> version(Deadline) override { return "1"; }

  Result<json> inspect(const std::string& container, Deadline) override {
    asked.push_back("inspect " + container);
    if (engine_error) {
      return fail(*engine_error);
    }
    if (!description_of_container) {
      return fail("no_such_container", "no such container");
    }
    return *description_of_container;
  }
  Result<bool> has_image(const std::string& name, Deadline) override {
    asked.push_back("has_image " + name);
    return image_exists;
  }
  Result<void> create(const ContainerSpec& spec, Deadline) override {
    asked.push_back("create " + spec.name);
    created = spec;
    description_of_container = container("made", "", "created");
    return create_error ? Result<void>(fail(*create_error)) : Result<void>();
  }
  Result<void> start(const std::string& container_id, Deadline) override {
    asked.push_back("start " + container_id);
    if (start_error) {
      return fail(*start_error);
    }
    (*description_of_container)["State"] = state("later", after_start);
    return {};
  }
  Result<void> put_archive(const std::string& container_id, const std::string& directory, const std::string& tar,
                           Deadline) override {
    asked.push_back("put_archive " + container_id + " " + directory);
    archive = tar;
    return {};
  }
  Result<std::unique_ptr<sandbox::ByteStream>> exec(const std::string& container_id,
                                                    const std::vector<std::string>& argv, Deadline) override {
    asked.push_back("exec " + container_id + " " + argv.at(0));
    return fail("exec_failed", "no");
  }

  static json state(const std::string& started_at, const std::string& status) {
    return {{"Status", status},
            {"Running", status == "running" || status == "paused"},
            {"Paused", status == "paused"},
            {"StartedAt", started_at}};
  }
  static json container(const std::string& id, const std::string& started_at, const std::string& status) {
    return {{"Id", id}, {"State", state(started_at, status)}};
  }
  [[nodiscard]] bool was_asked(const std::string& what) const {
    return std::find(asked.begin(), asked.end(), what) != asked.end();
  }

  std::optional<json> description_of_container;
  bool image_exists = true;
  std::string after_start = "running";
  std::optional<Error> engine_error;
  std::optional<Error> create_error;
  std::optional<Error> start_error;
  std::optional<ContainerSpec> created;
  std::string archive;
  std::vector<std::string> asked;
};

struct World {
  FakeEngine engine;
  ContainerPolicy policy;
  Log log{-1, LogLevel::off, LogFormat::text};

  World() { policy.name = "box"; }

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

TEST_CASE("a container that runs is used as it is") {
  World world;
  world.engine.description_of_container = FakeEngine::container("abc", "now", "running");
  CHECK(world.prepared() == ContainerRun{"abc", "now"});
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box"});
}

TEST_CASE("the directory of the host that is the container's workdir is known, unless it is not to be used") {
  World world;
  json container = FakeEngine::container("abc", "now", "running");
  container["Mounts"] = {{{"Type", "volume"}, {"Name", "v"}, {"Source", "/var/v"}, {"Destination", "/app"}},
                         {{"Type", "bind"}, {"Source", "/home/me/other"}, {"Destination", "/app/other"}},
                         {{"Type", "bind"}, {"Source", "/home/me/tmp"}, {"Destination", "/app"}}};
  world.engine.description_of_container = container;
  const auto shared = world.prepared().shared;
  REQUIRE(shared);
  CHECK(shared->host_path == "/home/me/tmp");
  CHECK(shared->container_path == "/app");

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

TEST_CASE("a container that is stopped is started, and the run is the new one") {
  World world;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  CHECK(world.prepared() == ContainerRun{"abc", "later"});
  CHECK(world.engine.was_asked("start abc"));
}

TEST_CASE("a container that may not be started is an error with the command that does it") {
  World world;
  world.policy.may_start = false;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  const Error error = world.refused();
  CHECK(error.code == "container_stopped");
  CHECK(error.message == "container 'box' is not running");
  CHECK(error.next_step == "docker start box");
  CHECK_FALSE(world.engine.was_asked("start abc"));
}

TEST_CASE("a container that stops right after its start is told from one that runs") {
  World world;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  world.engine.after_start = "exited";
  const Error error = world.refused();
  CHECK(error.code == "container_stopped");
  CHECK(error.next_step.find("docker logs box") != std::string::npos);
}

TEST_CASE("an engine that cannot start the container says why") {
  World world;
  world.engine.description_of_container = FakeEngine::container("abc", "earlier", "exited");
  world.engine.start_error = Error{"engine_error", "port is taken"};
  CHECK(world.refused().message == "port is taken");
}

TEST_CASE("a container that is paused is left so, with the command that wakes it") {
  World world;
  world.engine.description_of_container = FakeEngine::container("abc", "now", "paused");
  const Error error = world.refused();
  CHECK(error.code == "container_paused");
  CHECK(error.next_step == "docker unpause box");
  CHECK(world.engine.asked.size() == 1);
}

TEST_CASE("a container that does not exist is created once from the image, then started") {
  World world;
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

TEST_CASE("a container that someone else creates at the same moment is used") {
  World world;
  world.engine.create_error = Error{"name_in_use", "the name is taken"};
  CHECK(world.prepared() == ContainerRun{"made", "later"});
}

TEST_CASE("an engine that cannot create the container says why") {
  World world;
  world.engine.create_error = Error{"engine_error", "invalid mount"};
  CHECK(world.refused().message == "invalid mount");
  CHECK_FALSE(world.engine.was_asked("start made"));
}

TEST_CASE("without container and image the error names both and how to make them") {
  World world;
  world.engine.image_exists = false;
  const Error error = world.refused();
  CHECK(error.code == "no_such_container");
  CHECK(error.message == "there is no container 'box'");
  CHECK(error.next_step.find(world.policy.image) != std::string::npos);
  CHECK(error.next_step.find("./run.sh") != std::string::npos);
  CHECK_FALSE(world.engine.created);
}

TEST_CASE("a container that may not be created is an error, and no image is looked for") {
  World world;
  world.policy.may_create = false;
  const Error error = world.refused();
  CHECK(error.code == "no_such_container");
  CHECK_FALSE(error.next_step.empty());
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box"});
}

TEST_CASE("an engine that does not answer is not a container that does not exist") {
  World world;
  world.engine.engine_error = Error{"no_engine", "cannot reach the engine", "Start it"};
  CHECK(world.refused().code == "no_engine");
  CHECK_FALSE(world.engine.created);
  const auto condition = world.condition({"abc", "now"});
  REQUIRE_FALSE(condition);
  CHECK(condition.error().code == "no_engine");
}

TEST_CASE("a description that cannot be understood is an error") {
  for (const char* text : {"{}", R"({"Id":"a"})", R"({"Id":"a","State":null})", R"({"Id":5,"State":{"StartedAt":"x"}})",
                           R"({"Id":"a","State":{}})", R"({"Id":"a","State":{"StartedAt":"x","Running":"yes"}})"}) {
    CAPTURE(text);
    World world;
    world.engine.description_of_container = json::parse(text);
    CHECK(world.refused().code == "engine_error");
    CHECK_FALSE(world.condition({"a", "x"}));
  }
}

TEST_CASE("the condition of a run is that of its container") {
  World world;
  const ContainerRun run{"abc", "now"};
  for (const auto& [status, condition] : {std::pair{"running", Condition::running},
                                          {"paused", Condition::paused},
                                          {"exited", Condition::stopped},
                                          {"dead", Condition::stopped}}) {
    CAPTURE(status);
    world.engine.description_of_container = FakeEngine::container("abc", "now", status);
    CHECK(world.known_condition(run) == condition);
  }
}

TEST_CASE("a run is gone when its container is removed, replaced or restarted") {
  World world;
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

TEST_CASE("asking for the condition neither starts nor creates anything") {
  World world;
  world.engine.description_of_container = FakeEngine::container("abc", "now", "exited");
  CHECK(world.known_condition({"abc", "now"}) == Condition::stopped);
  CHECK(world.engine.asked == std::vector<std::string>{"inspect box"});
}

TEST_CASE("programs are started and files placed in the run that was found, not in whatever has the name") {
  World world;
  DockerChannel channel(world.engine, world.policy, world.log);
  const ContainerRun run{"abc", "now"};
  const auto deadline = Deadline::after(seconds(10));
  CHECK_FALSE(channel.open(run, {"/agent", "session"}, deadline));
  CHECK(channel.place(run, "/tmp", ".folder", {"content", "agent-1"}, deadline));
  CHECK(world.engine.asked == std::vector<std::string>{"exec abc /agent", "put_archive abc /tmp"});
}

TEST_CASE("a placed file is executable and has a state folder beside it that all may write to") {
  World world;
  DockerChannel channel(world.engine, world.policy, world.log);
  CHECK(channel.place({"abc", "now"}, "/", "var/lib/x", {"content", "agent-1"}, Deadline::after(seconds(10))));
  CHECK(world.engine.archive ==
        docker::make_tar(
            {{"var/lib/x/", 0755, {}}, {"var/lib/x/state/", 01777, {}}, {"var/lib/x/agent-1", 0755, "content"}}));
}
