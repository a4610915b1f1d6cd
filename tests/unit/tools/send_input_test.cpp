#include <doctest/doctest.h>

#include <csignal>
#include <map>

#include "support/field.hpp"
#include "tools/tool_table.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

const mcp::OnceMark k_mark{std::string(32, 'a'), std::string(32, 'c')};

/// An answer to a request with an idempotency key.
json done_once(std::size_t accepted, bool before, std::size_t units) {
  return {{"accepted", accepted}, {"before", before}, {"units", units}, {"seen", {0, 0}}};
}

/// A process in this state. A wait for it ends at once. The agent answers each other operation as the test says.
World world_of(const json& state, std::map<std::string, json> answers) {
  answers["wait"] = {{"process", state}, {"carried", true}, {"happened", "ended"}};
  return World([answers](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, answers.at(request.head.at("op")));
  });
}

mcp::ToolResult send_once(World& world, json arguments) {
  arguments.update({{"processId", k_process}, {"rationale", "a test"}});
  tools::Arguments read(arguments);
  const mcp::Interruption interruption;
  mcp::CallContext context{"r1", "local", interruption};
  context.progress_detail = mcp::ProgressDetail::heartbeat;
  context.once = k_mark;
  const tools::Settings settings;
  return tools::k_send_input.call({world.sandbox, settings, read, context, settings.selection});
}

}  // namespace

TEST_CASE("send_input: a repetition after eof continues with the interrupt") {
  json closed = state_of(k_process);
  closed["stdinOpen"] = false;
  World world = world_of(
      closed, {{"taken", done_once(0, true, 6)}, {"input", done_once(5, true, 6)}, {"signal", done_once(1, false, 7)}});
  const auto result =
      send_once(world, {{"input", "last\n"}, {"autoNewline", false}, {"eof", true}, {"keys", {"ctrl-c"}}});
  CAPTURE(result.text);
  CHECK_FALSE(result.is_error);
  CHECK(field(result.structured, "accepted") == 5);
  CHECK(world.container.count("input") == 1);
  const auto signals = world.container.requests("signal");
  REQUIRE(signals.size() == 1);
  CHECK(field(signals[0].head, "signal") == SIGINT);
  CHECK(field(signals[0].head, "once") ==
        json{{"key", k_mark.key}, {"call", k_mark.call}, {"at", 6}, {"seen", {0, 0}}});
}

TEST_CASE("send_input: input with a new key is rejected if stdin is closed") {
  json closed = state_of(k_process);
  closed["stdinOpen"] = false;
  World world = world_of(closed, {{"taken", done_once(0, false, 0)}, {"input", done_once(0, false, 0)}});
  const auto result = send_once(world, {{"input", "more"}, {"keys", {"ctrl-c"}}});
  CHECK(field(result.structured, "error", "code") == "stdin_closed");
  CHECK(world.container.count("input") == 0);
  CHECK(world.container.count("signal") == 0);
}

TEST_CASE("send_input: a repeated interrupt reports the ended process each time") {
  World world = world_of(state_of(k_process), {{"signal", done_once(0, false, 0)}, {"taken", done_once(0, false, 0)}});
  for (int time = 0; time < 2; ++time) {
    CHECK(field(send_once(world, {{"keys", {"ctrl-c"}}}).structured, "error", "code") == "process_ended");
  }
  CHECK(world.container.count("signal") == 2);
}
