#include "sandbox/sandbox.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <future>
#include <latch>
#include <set>
#include <string>
#include <vector>

#include "support/field.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Condition;
using sandbox::Sandbox;
using sandbox::Stream;

TEST_CASE("sandbox: a request that may not connect creates no connection") {
  World world;
  CHECK(code_of(world.sandbox.round_trip()) == "connection_lost");
  CHECK(code_of(world.sandbox.processes().list("local", 10, {}, sandbox::Connect::never)) == "connection_lost");
  CHECK(world.container.prepared() == 0);
  REQUIRE(world.sandbox.hello());
  CHECK(world.sandbox.round_trip());
}

TEST_CASE("sandbox: the first use connects") {
  World world;
  CHECK(world.sandbox.container_name() == "box");
  CHECK(world.sandbox.workdir() == "/app");
  CHECK(world.container.prepared() == 0);
  const auto hello = world.sandbox.hello();
  REQUIRE(hello);
  CHECK(hello->version == "1.2.3");
  CHECK(world.container.prepared() == 1);
}

TEST_CASE("sandbox: many threads share one connection") {
  World world;
  constexpr int k_threads = 16;
  std::latch together(k_threads);
  std::vector<std::future<std::string>> calls;
  for (int i = 0; i < k_threads; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      together.arrive_and_wait();
      return code_of_wait(world.sandbox);
    }));
  }
  for (auto& call : calls) {
    CHECK(call.get() == "success");
  }
  CHECK(world.container.prepared() == 1);
  CHECK(world.container.opened() == 1);
  CHECK(world.container.count("wait") == k_threads);
}

TEST_CASE("sandbox: a missing container is an error, and looked up at each call") {
  World world;
  world.container.set_prepare_error(Error{ErrorCode::no_such_container, "there is no container 'box'", "Create it"});
  CHECK(code_of(world.sandbox.hello()) == "no_such_container");
  CHECK(code_of(world.sandbox.processes().new_process_id()) == "no_such_container");
  CHECK(code_of(world.sandbox.processes().list("local", 50, {})) == "no_such_container");
  CHECK(code_of_wait(world.sandbox) == "no_such_container");
  CHECK(world.container.opened() == 0);
  world.container.set_prepare_error(std::nullopt);
  CHECK(code_of_wait(world.sandbox) == "success");
}

TEST_CASE("sandbox: a cancelled call does not wait for one that connects") {
  World world;
  std::promise<void> connecting;
  std::promise<void> released;
  world.container.set_before_prepare([&] {
    connecting.set_value();
    released.get_future().wait();
  });
  auto first = std::async(std::launch::async, [&] { return code_of_wait(world.sandbox); });
  connecting.get_future().wait();
  std::stop_source source;
  source.request_stop();
  CHECK(code_of(world.sandbox.processes().wait(k_process, milliseconds(0), {}, source.get_token())) == "cancelled");
  released.set_value();
  CHECK(first.get() == "success");
}

TEST_CASE("sandbox: an exception of the channel fails only one call") {
  World world;
  world.container.set_before_prepare([] { throw std::runtime_error("no threads left"); });
  const auto failed = world.sandbox.hello();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::internal_error);
  CHECK(failed.error().message.find("no threads left") != std::string::npos);
  world.container.set_before_prepare([] {});
  CHECK(world.sandbox.hello());
}

TEST_CASE("sandbox: one call connects, and waiting calls share its failure") {
  World world;
  world.container.set_prepare_error(Error{ErrorCode::engine_hung, "the engine does not answer", ""});
  constexpr int k_threads = 8;
  std::latch together(k_threads);
  std::atomic<int> at_once = 0;
  std::atomic<int> most_at_once = 0;
  world.container.set_before_prepare([&] {
    most_at_once = std::max(most_at_once.load(), ++at_once);
    together.wait();
    --at_once;
  });
  std::vector<std::future<std::string>> calls;
  for (int i = 0; i < k_threads; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      together.count_down();
      return code_of_wait(world.sandbox);
    }));
  }
  for (auto& call : calls) {
    CHECK(call.get() == "engine_hung");
  }
  CHECK(most_at_once == 1);
}

TEST_CASE("sandbox: a violation in the greeting is an error") {
  World world;
  world.container.set_greeting(greeting(json::object()));
  CHECK(code_of(world.sandbox.hello()) == "protocol_violation");
  world.container.set_greeting(greeting(hello_head()));
  CHECK(code_of(world.sandbox.hello()) == "success");
}

TEST_CASE("sandbox: the next call after a loss reconnects") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    behave_well(agent, request);
    if (session == 1) {
      agent.hang_up();
    }
  });
  CHECK(code_of_wait(world.sandbox) == "success");
  CHECK(code_of_wait(world.sandbox) == "success");
  CHECK(code_of_wait(world.sandbox) == "success");
  CHECK(world.container.opened() == 2);
}

TEST_CASE("sandbox: wait and read are repeated once after a loss") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    if (session == 1) {
      agent.hang_up();
    } else if (request.head.at("op") == "read") {
      agent.answer(request, {{"offset", 0}, {"stream", {3, 3, 3}}}, "abc");
    } else {
      behave_well(agent, request);
    }
  });
  std::string op;
  SUBCASE("a wait") {
    op = "wait";
    CHECK(code_of_wait(world.sandbox) == "success");
  }
  SUBCASE("a read") {
    op = "read";
    const auto slice = world.sandbox.processes().read(k_process, Stream::out, 0, 10, {});
    REQUIRE(slice);
    CHECK(slice->bytes == "abc");
  }
  CHECK(world.container.count(op) == 2);
  CHECK(world.container.opened() == 2);
}

TEST_CASE("sandbox: repeated losses are an error") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  CHECK(code_of_wait(world.sandbox) == "connection_lost");
  CHECK(world.container.count("wait") == 2);
}

TEST_CASE("sandbox: input is never repeated after a loss") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  CHECK(code_of(world.sandbox.control().send_input(k_process, "yes\n", false)) == "connection_lost");
  CHECK(world.container.count("input") == 1);
}

TEST_CASE("sandbox: a start that lost the agent looks the process up") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    if (session == 1) {
      agent.hang_up();
    } else {
      behave_well(agent, request);
    }
  });
  const auto started = world.sandbox.processes().start(start_request(), milliseconds(0), {}, {});
  REQUIRE(started);
  CHECK(started->state.id == k_process);
  CHECK(world.container.count("start") == 1);
  REQUIRE(world.container.count("wait") == 1);
  CHECK(field(world.container.requests("wait")[0].head, "process") == k_process);
}

TEST_CASE("sandbox: a start that did not arrive is repeated with the same id") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    if (session == 1) {
      agent.hang_up();
    } else if (request.head.at("op") == "wait") {
      agent.refuse(request, "no_such_process");
    } else {
      behave_well(agent, request);
    }
  });
  // The process belongs to the current run, so it is not reported as gone.
  const auto id = world.sandbox.processes().new_process_id();
  REQUIRE(id);
  CHECK(world.sandbox.processes().start(start_request(*id), milliseconds(0), {}, {}));
  const auto starts = world.container.requests("start");
  REQUIRE(starts.size() == 2);
  for (const auto& start : starts) {
    CHECK(field(start.head, "process") == *id);
    CHECK(start.body == "make");
  }
}

TEST_CASE("sandbox: a start that cannot be looked up is not repeated") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    if (session == 1 || request.head.at("op") == "wait") {
      agent.hang_up();
    } else {
      behave_well(agent, request);
    }
  });
  CHECK(code_of(world.sandbox.processes().start(start_request(), milliseconds(0), {}, {})) == "connection_lost");
  CHECK(world.container.count("start") == 1);
}

TEST_CASE("sandbox: a start is not repeated in another run of the container") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  world.container.set_condition(Condition::gone);
  CHECK(code_of(world.sandbox.processes().start(start_request(), milliseconds(0), {}, {})) == "container_replaced");
  CHECK(world.container.count("start") == 1);
  CHECK(world.container.count("wait") == 0);
}

TEST_CASE("sandbox: a stopped call returns, and the sandbox stays usable") {
  std::latch asked(1);
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    if (request.head.at("op") == "start") {
      asked.count_down();
    } else {
      behave_well(agent, request);
    }
  });
  std::stop_source source;
  auto start = std::async(std::launch::async, [&] {
    return code_of(world.sandbox.processes().start(start_request(), seconds(60), {}, source.get_token()));
  });
  asked.wait();
  source.request_stop();
  CHECK(start.get() == "cancelled");
  CHECK(code_of_wait(world.sandbox) == "success");
  CHECK(world.container.opened() == 1);
}

TEST_CASE("sandbox: the cause of a lost connection is reported with a next step") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  const auto lost_while = [&](Result<Condition> condition) {
    world.container.set_condition(std::move(condition));
    const auto answer = world.sandbox.processes().list("local", 50, {});
    REQUIRE_FALSE(answer);
    return answer.error();
  };
  CHECK(lost_while(Condition::running).code == ErrorCode::connection_lost);
  CHECK(lost_while(Condition::paused).code == ErrorCode::container_paused);
  CHECK(lost_while(Condition::paused).next_step == "docker unpause box");
  CHECK(lost_while(Condition::stopped).code == ErrorCode::container_stopped);
  CHECK(lost_while(Condition::gone).code == ErrorCode::container_replaced);
  CHECK(lost_while(fail(ErrorCode::no_engine, "the engine is gone", "Start it")).code == ErrorCode::no_engine);
}

TEST_CASE("sandbox: a container that stops during the start is the reported cause") {
  World world;
  world.container.set_usable_bases({});
  world.container.set_condition(Condition::stopped);
  CHECK(code_of(world.sandbox.hello()) == "container_stopped");
}

TEST_CASE("sandbox: process ids contain the run and are unique") {
  World world;
  const sandbox::ContainerRun first{"id", "2026-01-01T00:00:00Z"};
  world.container.set_run(first);
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto id = world.sandbox.processes().new_process_id();
    REQUIRE(id);
    REQUIRE(wire::is_process_id(*id));
    CHECK(id->starts_with("proc_" + std::to_string(first.generation()) + "_"));
    CHECK(ids.insert(*id).second);
  }
}

TEST_CASE("sandbox: a restart or replacement changes the generation") {
  const sandbox::ContainerRun run{"id", "2026-01-01T00:00:00Z"};
  const sandbox::ContainerRun restarted{"id", "2026-01-01T00:00:01Z"};
  const sandbox::ContainerRun replaced{"other", "2026-01-01T00:00:00Z"};
  CHECK(run.generation() == sandbox::ContainerRun(run).generation());
  CHECK(run.generation() != restarted.generation());
  CHECK(run.generation() != replaced.generation());
}

TEST_CASE("sandbox: a restart during connecting leads to the new run") {
  World world;
  const sandbox::ContainerRun restarted{"id", "2026-01-01T00:00:01Z"};
  world.container.set_run({"id", "2026-01-01T00:00:00Z"});
  world.container.set_before_open([&] { world.container.set_run(restarted); });
  const auto id = world.sandbox.processes().new_process_id();
  REQUIRE(id);
  CHECK(id->starts_with(fmt::format("proc_{}_", restarted.generation())));
}

TEST_CASE("sandbox: repeated restarts during connecting are an error") {
  World world;
  int restarts = 0;
  world.container.set_before_open([&] { world.container.set_run({"id", std::to_string(++restarts)}); });
  CHECK(world.sandbox.processes().new_process_id());
  CHECK(world.container.opened() < 10);
}

TEST_CASE("sandbox: a malformed process id is rejected without a request") {
  World world;
  for (const std::string id :
       {"", "1234", "proc_1", "proc_x_abc", "proc_1_../../etc", "proc_99999999999999999999_a", "proc_4294967296_a"}) {
    CAPTURE(id);
    CHECK(code_of_wait(world.sandbox, id) == "bad_process_id");
    CHECK(code_of(world.sandbox.processes().read(id, Stream::out, 0, 1, {})) == "bad_process_id");
    CHECK(code_of(world.sandbox.control().send_input(id, "x", false)) == "bad_process_id");
    CHECK(code_of(world.sandbox.control().end(id, wire::Cause::terminated, {})) == "bad_process_id");
  }
  CHECK(world.container.prepared() == 0);
}

TEST_CASE("sandbox: an unknown process of another run is reported as gone") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, "no_such_process"); });
  const auto own = world.sandbox.processes().new_process_id();
  REQUIRE(own);
  CHECK(code_of_wait(world.sandbox, *own) == "no_such_process");
  CHECK(code_of_wait(world.sandbox, "proc_1_abc") == "process_gone");
}

TEST_CASE("sandbox: a violation in an answer drops the connection") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", 5}, {"carried", false}, {"happened", "nothing"}});
  });
  CHECK(code_of_wait(world.sandbox) == "protocol_violation");
  CHECK(code_of_wait(world.sandbox) == "protocol_violation");
  CHECK(world.container.opened() == 2);
}
