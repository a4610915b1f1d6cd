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

/// A process that prints `answer` after input, and clients that send it some.
struct Answering {
  std::string earlier{};
  std::string answer{};
  std::string happened = "idle";
  tools::Settings settings{};
  std::shared_ptr<tools::ShownCursors> shown = std::make_shared<tools::ShownCursors>();
  bool has_input = false;
  World world{[this](FakeAgent& agent, const wire::Frame& request) {
    if (request.head.at("op") == "input") {
      has_input = true;
      agent.answer(request, {{"accepted", 2}});
      return;
    }
    const std::string out = has_input ? earlier + answer : earlier;
    json state = state_of(k_process);
    state["out"] = {out.size(), out.size(), out.size()};
    agent.answer(request, {{"process", state}, {"carried", true}, {"happened", has_input ? happened : "nothing"}}, out);
  }};

  mcp::ToolResult send(json more = json::object()) {
    more.update({{"processId", k_process}, {"input", "x"}, {"rationale", "a test"}});
    tools::Arguments read(more);
    const mcp::Interruption interruption;
    mcp::CallContext context{"r1", "local", interruption, {}};
    context.client = "alice";
    auto result =
        tools::k_send_input.call({world.sandbox, settings, read, context, settings.selection, Clock::now(), shown});
    CHECK_FALSE(result.is_error);
    return result;
  }
};

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

TEST_CASE("send_input: shows output before the input that the client was not shown") {
  Answering process{.earlier = "$ BREAKPOINT HIT\n$ ", .answer = "next\n"};
  process.shown->when_delivered("alice", k_process, {}, {2, 0})();
  const auto result = process.send();
  CHECK(result.text.starts_with("BREAKPOINT HIT\n$ next\n"));
  result.on_delivered();
  CHECK(process.shown->known("alice", k_process).text() == "24:0");
}

TEST_CASE("send_input: does not repeat what the client was shown") {
  Answering process{.earlier = "$ ", .answer = "next\n"};
  process.shown->when_delivered("alice", k_process, {}, {2, 0})();
  CHECK(process.send().text.starts_with("next\n"));
}

TEST_CASE("send_input: without an answer, the reply says how to wait for it") {
  Answering process{.happened = "nothing"};
  CHECK(process.send({{"timeout", 0}}).text ==
        "(no output)\n\nproc_1_abc is running. check_process with timeout waits for the answer.");
  process.settings.selection = tools::ToolSelection::parse("send_input").value();
  CHECK(process.send({{"timeout", 0}}).text == "(no output)\n\nproc_1_abc is running.");
  process.happened = "idle";
  process.settings.selection = {};
  CHECK(process.send().text == "(no output)\n\nproc_1_abc is running.");
}

TEST_CASE("send_input: after a lost connection, the next step is to check the process") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    if (request.head.at("op") == "input") {
      agent.hang_up();
    } else {
      behave_well(agent, request);
    }
  });
  json arguments = {{"processId", k_process}, {"input", "x"}, {"rationale", "a test"}};
  tools::Arguments read(arguments);
  const mcp::Interruption interruption;
  const mcp::CallContext context{"r1", "local", interruption, {}};
  const tools::Settings settings;
  const auto result = tools::k_send_input.call({world.sandbox, settings, read, context, settings.selection});
  CHECK(field(result.structured, "error", "code") == "connection_lost");
  CHECK(field(result.structured, "error", "nextStep") == "check_process proc_1_abc shows how the process reacted");
}
