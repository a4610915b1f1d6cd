#include <doctest/doctest.h>

#include <future>
#include <latch>

#include "sandbox/seen_revisions.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::sandbox;
using namespace dockbridge::test;

namespace {

struct Loss {
  Result<Condition> condition;
  ErrorCode code;
};

/// Conditions of a container whose stream broke, and the error code of the call.
std::vector<Loss> losses() {
  return {{Condition::paused, ErrorCode::container_paused},
          {Condition::stopped, ErrorCode::container_stopped},
          {Condition::gone, ErrorCode::container_replaced},
          {fail(ErrorCode::no_engine, "no engine"), ErrorCode::no_engine},
          {fail(ErrorCode::engine_error, "engine error"), ErrorCode::engine_error},
          {fail(ErrorCode::engine_hung, "engine hung"), ErrorCode::engine_hung}};
}

}  // namespace

TEST_CASE("sandbox: an error after the request was sent leaves the outcome unknown") {
  for (const Loss& loss : losses()) {
    CAPTURE(name_of(loss.code));
    World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
    world.container.set_condition(loss.condition);
    const auto started = world.sandbox.processes().start(start_request(), milliseconds(0), {}, {});
    REQUIRE_FALSE(started);
    CHECK(started.error().code == loss.code);
    CHECK(started.error().outcome_unknown);
    const auto sent = world.sandbox.control().send_input(k_process, "x", false);
    REQUIRE_FALSE(sent);
    CHECK(sent.error().outcome_unknown);
  }
}

TEST_CASE("sandbox: an error before the request was sent has a known outcome") {
  World world;
  world.container.set_prepare_error(Error{ErrorCode::no_engine, "no engine"});
  const auto started = world.sandbox.processes().start(start_request(), milliseconds(0), {}, {});
  REQUIRE_FALSE(started);
  CHECK_FALSE(started.error().outcome_unknown);
}

TEST_CASE("sandbox: an agent's error has a known outcome, unless the command may run") {
  const auto unknown_after = [](const char* code) {
    World world([=](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, code); });
    const auto started = world.sandbox.processes().start(start_request(), milliseconds(0), {}, {});
    REQUIRE_FALSE(started);
    CHECK(name_of(started.error().code) == code);
    return started.error().outcome_unknown;
  };
  CHECK_FALSE(unknown_after("bad_cwd"));
  CHECK_FALSE(unknown_after("no_shell"));
  CHECK(unknown_after("record_damaged"));
  CHECK(unknown_after("io_error"));
}

TEST_CASE("files: a worker that died leaves the outcome of a change unknown") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, "worker_gone"); });
  const auto written = world.sandbox.files().write({"/app/a", "o", {}}, {.bytes = "x"}, {});
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::worker_gone);
  CHECK(written.error().outcome_unknown);
  CHECK(written.error().message.find("the change to /app/a may have been made") != std::string::npos);
}

TEST_CASE("sandbox: a malformed reply leaves the outcome unknown") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, {{"process", 1}}); });
  const auto started = world.sandbox.processes().start(start_request(), milliseconds(0), {}, {});
  REQUIRE_FALSE(started);
  CHECK(started.error().code == ErrorCode::protocol_violation);
  CHECK(started.error().outcome_unknown);
}

TEST_CASE("sandbox: an engine error after a lost start leaves the outcome unknown") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  world.container.set_before_prepare([&world, first = true]() mutable {
    if (!std::exchange(first, false)) {
      world.container.set_condition(fail(ErrorCode::engine_error, "engine error"));
    }
  });
  const auto started = world.sandbox.processes().start(start_request(), milliseconds(0), {}, {});
  REQUIRE_FALSE(started);
  CHECK(started.error().outcome_unknown);
}

TEST_CASE("files: the error of a lost change names the file and its revision") {
  for (const Loss& loss : losses()) {
    CAPTURE(name_of(loss.code));
    World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
    world.container.set_condition(loss.condition);
    const auto changed = world.sandbox.files().write({"/app/x", "local", "0123456789abcdef"}, {"content"});
    REQUIRE_FALSE(changed);
    CHECK(changed.error().code == loss.code);
    CHECK(changed.error().message.ends_with("the change to /app/x may have been made, or may still be made"));
    CHECK(changed.error().next_step.starts_with(
        "Read the file to check; its revision before the change was 0123456789abcdef"));
  }
}

TEST_CASE("files: a change that the agent refuses has a known outcome") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, "not_read"); });
  const auto changed = world.sandbox.files().write({"/app/x", "local", std::nullopt}, {"content"});
  REQUIRE_FALSE(changed);
  CHECK(changed.error().message.find("may have been made") == std::string::npos);
}

TEST_CASE("sandbox: a start that the caller stops is cancelled at the agent") {
  std::latch asked(1);
  std::promise<wire::Frame> cancelled;
  std::atomic<std::uint64_t> start_id = 0;
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    if (request.head.at("op") == "start") {
      start_id = request.head.at("id").get<std::uint64_t>();
      asked.count_down();
    } else if (request.head.at("op") == "cancel") {
      cancelled.set_value(request);
      agent.answer(request);
    }
  });
  std::stop_source source;
  auto start = std::async(std::launch::async, [&] {
    return code_of(world.sandbox.processes().start(start_request(), seconds(60), {}, source.get_token()));
  });
  asked.wait();
  source.request_stop();
  CHECK(start.get() == "cancelled");
  auto cancellation = cancelled.get_future();
  REQUIRE(cancellation.wait_for(k_patience) == std::future_status::ready);
  CHECK(cancellation.get().head.at("request") == start_id.load());
}

TEST_CASE("seen revisions: stores one per owner and file for the latest 1,000 files") {
  SeenRevisions seen;
  CHECK(seen.find("a", "/x") == "");
  seen.remember("a", "/x", "1");
  seen.remember("a", "/x", "2");
  seen.remember("b", "/x", "3");
  CHECK(seen.find("a", "/x") == "2");
  CHECK(seen.find("b", "/x") == "3");
  for (int i = 0; i < 1000; ++i) {
    seen.remember("a", "/" + std::to_string(i), "4");
  }
  CHECK(seen.find("a", "/x") == "");
  CHECK(seen.find("a", "/999") == "4");
}
