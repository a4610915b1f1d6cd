#include "sandbox/agent_launch.hpp"

#include <doctest/doctest.h>

#include "sandbox/agent_image.hpp"
#include "sandbox/trusted_runs.hpp"
#include "support/temporary_directory.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("launcher: an absent agent is placed in the first directory that accepts it") {
  World world;
  std::string path;
  SUBCASE("a folder of its own") {
    world.container.set_usable_bases({"/", "/var/lib/dockbridge", "/app"});
    path = "/.dockbridge/agent-";
  }
  SUBCASE("a volume") {
    world.container.set_usable_bases({"/var/lib/dockbridge", "/app"});
    path = "/var/lib/dockbridge/agent-";
  }
  SUBCASE("the workdir") {
    world.container.set_usable_bases({"/app"});
    path = "/app/.dockbridge-agent/agent-";
  }
  CHECK(world.sandbox.hello());
  REQUIRE(world.container.placed().size() == 1);
  CHECK(world.container.placed().front().starts_with(path));
  CHECK(world.container.started() == world.container.placed());
}

TEST_CASE("launcher: an agent that cannot be placed is an error naming every directory") {
  World world;
  world.container.set_usable_bases({});
  const auto hello = world.sandbox.hello();
  REQUIRE_FALSE(hello);
  CHECK(hello.error().code == ErrorCode::agent_not_placed);
  for (const char* place : {"/.dockbridge/agent-", "/var/lib/dockbridge/agent-", "/app/.dockbridge-agent/agent-",
                            "read-only file system"}) {
    CHECK(hello.error().message.find(place) != std::string::npos);
  }
  CHECK(hello.error().next_step.find("--volume /var/lib/dockbridge") != std::string::npos);
  CHECK(world.container.started().empty());
}

TEST_CASE("launcher: a file that others can replace is not started or overwritten") {
  World world;
  world.container.set_unsafe({"/.dockbridge", "/var"});
  CHECK(world.sandbox.hello());
  REQUIRE(world.container.started().size() == 1);
  CHECK(world.container.started().front().starts_with("/app/"));
  CHECK(world.container.placed().empty());

  World none;
  none.container.set_unsafe({"/"});
  const auto hello = none.sandbox.hello();
  REQUIRE_FALSE(hello);
  CHECK(hello.error().code == ErrorCode::agent_not_placed);
  CHECK(hello.error().message.find("it belongs to uid 1000") != std::string::npos);
  CHECK(none.container.started().empty());
  CHECK(none.container.placed().empty());
}

TEST_CASE("launcher: a file that is not the agent is replaced before anything is started") {
  World world;
  world.container.set_foreign_until_placed(2);  // another server placed one at the same time
  CHECK(world.sandbox.hello());
  CHECK(world.container.placed().size() == 2);
  CHECK(world.container.started().size() == 1);

  World never;
  never.container.set_foreign_until_placed(1000);
  CHECK(code_of(never.sandbox.hello()) == "agent_not_placed");
  CHECK(never.container.started().empty());
}

TEST_CASE("launcher: a placement that fails is retried") {
  World world;
  world.container.set_usable_bases({"/", "/app"});
  world.container.set_failing_places(3);
  CHECK(world.sandbox.hello());
  REQUIRE(world.container.placed().size() == 1);
  CHECK(world.container.placed().front().starts_with("/.dockbridge/"));

  World never;
  never.container.set_usable_bases({"/", "/app"});
  never.container.set_failing_places(1000);
  const auto hello = never.sandbox.hello();
  REQUIRE_FALSE(hello);
  CHECK(hello.error().code == ErrorCode::agent_not_placed);
  CHECK(hello.error().message.find("file exists") != std::string::npos);
}

TEST_CASE("launcher: other servers start an agent without examining it again") {
  const TemporaryDirectory state;
  sandbox::Sandbox::Settings settings;
  settings.trusted_runs_directory = state / "dockbridge/trusted-runs";
  World first(behave_well, settings);
  CHECK(first.sandbox.hello());
  CHECK(first.container.examined() == 1);

  World second(behave_well, settings);
  second.container.set_unsafe({"/"});  // a second examination would fail
  CHECK(second.sandbox.hello());
  CHECK(second.container.examined() == 0);
  CHECK(second.container.started() == first.container.started());

  World restarted(behave_well, settings);
  restarted.container.set_run({"0123456789abcdef", "2026-01-02T00:00:00Z"});
  CHECK(restarted.sandbox.hello());
  CHECK(restarted.container.examined() == 1);
}

TEST_CASE("launcher: a record of any other path than the agent's places is ignored") {
  const TemporaryDirectory state;
  sandbox::Sandbox::Settings settings;
  settings.trusted_runs_directory = state / "trusted-runs";
  const std::string elsewhere = "/tmp/" + sandbox::agent_file_name();
  sandbox::TrustedRuns(settings.trusted_runs_directory).add({"0123456789abcdef", "2026-01-01T00:00:00Z"}, elsewhere);
  World world(behave_well, settings);
  CHECK(world.sandbox.hello());
  CHECK(world.container.examined() == 1);
  REQUIRE(world.container.started().size() == 1);
  CHECK(world.container.started().front() != elsewhere);
}

TEST_CASE("launcher: an agent that is recorded but missing is placed again") {
  const TemporaryDirectory state;
  sandbox::Sandbox::Settings settings;
  settings.trusted_runs_directory = state / "trusted-runs";
  World first(behave_well, settings);
  CHECK(first.sandbox.hello());

  World second(behave_well, settings);
  second.container.set_usable_bases({"/"});
  CHECK(second.sandbox.hello());
  CHECK(second.container.placed().size() == 1);
}

TEST_CASE("launcher: without owners only an agent placed just now below / is started") {
  World world;
  world.container.set_ownerless();
  SUBCASE("the agent is there") {}
  SUBCASE("it is not") {
    world.container.set_usable_bases({"/"});
  }
  CHECK(world.sandbox.hello());
  REQUIRE(world.container.placed().size() == 1);
  CHECK(world.container.placed().front().starts_with("/.dockbridge/"));
  CHECK(world.container.started() == world.container.placed());

  World volume;
  volume.container.set_ownerless();
  volume.container.set_usable_bases({"/var/lib/dockbridge", "/app"});
  CHECK(code_of(volume.sandbox.hello()) == "agent_not_placed");
  CHECK(volume.container.started().empty());
}

TEST_CASE("launcher: the agent is examined once in a run of the container") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    if (request.head.at("op") == "list") {
      agent.hang_up();
    } else {
      behave_well(agent, request);
    }
  });
  CHECK(world.sandbox.hello());
  CHECK(world.container.examined() == 1);
  const auto reconnect = [&] {
    CHECK(code_of(world.sandbox.processes().list("local", 10, {})) == "connection_lost");
    CHECK(world.sandbox.hello());
  };
  reconnect();
  CHECK(world.container.opened() == 2);
  CHECK(world.container.examined() == 1);
  world.container.set_run({"0123456789abcdef", "2026-01-02T00:00:00Z"});
  CHECK(code_of(world.sandbox.processes().list("local", 10, {})) == "container_replaced");
  CHECK(world.sandbox.hello());
  CHECK(world.container.examined() == 2);
}

TEST_CASE("launcher: an engine that cannot examine is an error, and nothing is started") {
  World world;
  world.container.set_examine_error(Error{ErrorCode::engine_hung, "the engine does not answer"});
  CHECK(code_of(world.sandbox.hello()) == "engine_hung");
  world.container.set_examine_error(Error{ErrorCode::engine_error, "HTTP 500"});
  CHECK(code_of(world.sandbox.hello()) == "agent_not_placed");
  CHECK(world.container.started().empty());
}

TEST_CASE("launcher: an agent that starts and reports an error is not placed elsewhere") {
  World world;
  world.container.set_greeting(
      greeting({{"fatal", {{"code", "no_state_directory"}, {"message", "nowhere"}, {"nextStep", "Mount one"}}}}));
  CHECK(code_of(world.sandbox.hello()) == "no_state_directory");
  CHECK(world.container.opened() == 1);
  CHECK(world.container.placed().empty());
}
