#include <doctest/doctest.h>

#include <atomic>
#include <limits>
#include <string>
#include <vector>

#include "support/field.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Stream;

TEST_CASE("processes: a start sends command, environment and input") {
  World world;
  auto request = start_request();
  request.environment = {{"A", "1"}, {"B", "x=y"}};
  request.input = "the input";
  request.owner = "alice";
  request.rationale = "to see";
  request.max_runtime = seconds(5);
  REQUIRE(world.sandbox.processes().start(request, milliseconds(1500), {}, {}));
  const auto sent = world.container.requests("start").at(0);
  CHECK(sent.body == std::string("makeA=1\0B=x=y\0the input", 23));
  CHECK(field(sent.head, "commandBytes") == 4);
  CHECK(field(sent.head, "environmentBytes") == 10);
  CHECK(field(sent.head, "stdin") == "body");
  CHECK(field(sent.head, "cwd") == "/app");
  CHECK(field(sent.head, "owner") == "alice");
  CHECK(field(sent.head, "rationale") == "to see");
  CHECK(field(sent.head, "maxRuntimeMs") == 5000);
  CHECK(field(sent.head, "timeoutMs") == 1500);

  CHECK_FALSE(sent.head.contains("user"));

  request.input.reset();
  request.user = "1000:1000";
  REQUIRE(world.sandbox.processes().start(request, milliseconds(0), {}, {}));
  const auto second = world.container.requests("start").at(1);
  CHECK(field(second.head, "stdin") == "pipe");
  CHECK(field(second.head, "user") == "1000:1000");
}

TEST_CASE("processes: an answer carries short output of both streams") {
  json state = state_of(k_process);
  state["out"] = {3, 3, 3};
  state["err"] = {5, 5, 5};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state}, {"carried", true}, {"happened", "nothing"}}, "outerror");
  });
  const auto snapshot = world.sandbox.processes().wait(k_process, milliseconds(0), {}, {});
  REQUIRE(snapshot);
  CHECK(snapshot->whole);
  CHECK(snapshot->out == "out");
  CHECK(snapshot->err == "error");
}

TEST_CASE("processes: a snapshot has the order of output, checked for validity") {
  json order;
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request,
                 {{"process", state_of(k_process)}, {"carried", false}, {"happened", "nothing"}, {"order", order}});
  });
  order = {3, 5, 3, 9};
  const auto snapshot = world.sandbox.processes().wait(k_process, milliseconds(0), {}, {});
  REQUIRE(snapshot);
  REQUIRE(snapshot->order.size() == 2);
  CHECK(snapshot->order[1].out == 3);
  CHECK(snapshot->order[1].err == 9);
  order = {3, 5, 2, 9};
  CHECK(code_of_wait(world.sandbox) == "protocol_violation");
}

TEST_CASE("processes: a wait sends its conditions") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state_of(k_process)},
                           {"carried", false},
                           {"happened", "pattern"},
                           {"line", "ready"},
                           {"searched", {3, 4}}});
  });
  wire::WaitCondition until{.known = sandbox::Offsets{7, 9}, .pattern = "x", .search_from = {1, 2}, .port = 80};
  until.idle = milliseconds(500);
  until.longest_idle = milliseconds(900);
  until.input = true;
  const auto snapshot = world.sandbox.processes().wait(k_process, milliseconds(250), until, {});
  REQUIRE(snapshot);
  CHECK(snapshot->happened == wire::WaitOutcome::pattern);
  CHECK(snapshot->line == "ready");
  CHECK(snapshot->searched == sandbox::Offsets{3, 4});
  const auto sent = world.container.requests("wait").at(0);
  CHECK(field(sent.head, "timeoutMs") == 250);
  CHECK(field(sent.head, "until") ==
        json::parse(
            R"({"known":[7,9],"pattern":"x","from":[1,2],"port":80,"idleMs":500,"longestIdleMs":900,"input":true})"));
}

TEST_CASE("processes: an implausible answer to a wait is a violation") {
  for (const char* happened : {"nothing", "grew", "pattern", "port", "idle", "input"}) {
    CAPTURE(happened);
    World world([happened](FakeAgent& agent, const wire::Frame& request) {
      agent.answer(request, {{"process", state_of(k_process)}, {"carried", false}, {"happened", happened}});
    });
    CHECK(code_of(world.sandbox.processes().wait(k_process, seconds(60), {}, {})) == "protocol_violation");
  }
}

TEST_CASE("processes: an argument that is too long is rejected before sending") {
  World world;
  CHECK(code_of(world.sandbox.processes().wait(k_process, milliseconds(0), {.pattern = std::string(70'000, 'x')},
                                               {})) == "too_long");
  CHECK(world.sandbox.processes().wait(k_process, milliseconds(0), {}, {}));
  CHECK(world.container.opened() == 1);
}

TEST_CASE("processes: a screen is validated") {
  const auto screen_for = [](const json& about) {
    World world([&about](FakeAgent& agent, const wire::Frame& request) {
      agent.answer(request, {{"screen", about}}, "text");
    });
    return world.sandbox.processes().screen(k_process, {});
  };
  const json good = {{"columns", 80}, {"rows", 24}, {"cursor", {1, 2}}, {"cursorVisible", true}, {"alternate", false}};
  const auto screen = screen_for(good);
  REQUIRE(screen);
  CHECK(screen->text == "text");
  CHECK(screen->cursor_column == 2);
  for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{{"columns", -1},
                                                                            {"rows", 100000},
                                                                            {"cursor", 5},
                                                                            {"cursor", {1}},
                                                                            {"cursor", {"a", "b"}},
                                                                            {"cursorVisible", 1},
                                                                            {"alternate", nullptr},
                                                                            {"addressed", -1},
                                                                            {"addressed", "1"},
                                                                            {"addressed", 1e300}}) {
    json bad = good;
    bad[key] = value;
    CHECK(code_of(screen_for(bad)) == "protocol_violation");
  }
  CHECK(code_of(screen_for(json())) == "protocol_violation");
  CHECK(code_of(screen_for({1, 2})) == "protocol_violation");
}

TEST_CASE("processes: a malformed answer to wait or start is a violation") {
  json growing = state_of(k_process);
  growing["out"] = {10, 10, 10};
  json overflowing = state_of(k_process);
  overflowing["out"] = {std::numeric_limits<std::uint64_t>::max(), 0, 0};
  overflowing["err"] = {std::numeric_limits<std::uint64_t>::max(), 0, 0};
  json disordered = state_of(k_process);
  disordered["out"] = {1, 3, 2};
  const json good = state_of(k_process);
  const std::vector<std::pair<json, std::string>> answers = {
      {json::object(), ""},
      {{{"process", good}}, ""},
      {{{"carried", false}, {"happened", "nothing"}}, ""},
      {{{"process", good}, {"carried", 1}, {"happened", "nothing"}}, ""},
      {{{"process", good}, {"carried", nullptr}, {"happened", "nothing"}}, ""},
      {{{"process", nullptr}, {"carried", false}, {"happened", "nothing"}}, ""},
      {{{"process", "running"}, {"carried", false}, {"happened", "nothing"}}, ""},
      {{{"process", json::array({1, 2})}, {"carried", false}, {"happened", "nothing"}}, ""},
      {{{"process", json::object()}, {"carried", false}, {"happened", "nothing"}}, ""},
      {{{"process", disordered}, {"carried", false}, {"happened", "nothing"}}, ""},
      {{{"process", growing}, {"carried", true}, {"happened", "nothing"}}, ""},
      {{{"process", growing}, {"carried", true}, {"happened", "nothing"}}, "123456789"},
      {{{"process", growing}, {"carried", true}, {"happened", "nothing"}}, "12345678901"},
      {{{"process", overflowing}, {"carried", true}, {"happened", "nothing"}}, "1"},
      {{{"process", good}, {"carried", true}, {"happened", "nothing"}}, "unannounced"},
      {{{"process", good}, {"carried", false}}, ""},
      {{{"process", good}, {"carried", false}, {"happened", "rain"}}, ""},
      {{{"process", good}, {"carried", false}, {"happened", 1}}, ""},
      {{{"process", good}, {"carried", false}, {"happened", "nothing"}, {"searched", {1}}}, ""},
      {{{"process", good}, {"carried", false}, {"happened", "nothing"}, {"searched", {1, -1}}}, ""},
  };
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, answers[at].first, answers[at].second);
  });
  for (; at < answers.size(); ++at) {
    CAPTURE(answers[at].first);
    CHECK(code_of_wait(world.sandbox) == "protocol_violation");
    CHECK(code_of(world.sandbox.processes().start(start_request(), milliseconds(0), {}, {})) == "protocol_violation");
  }
}

TEST_CASE("processes: a malformed answer to read is a violation") {
  const json stream = {100, 100, 100};
  const std::vector<std::pair<json, std::string>> answers = {
      {json::object(), "abc"},
      {{{"offset", 10}}, "abc"},
      {{{"stream", stream}}, "abc"},
      {{{"offset", "10"}, {"stream", stream}}, "abc"},
      {{{"offset", nullptr}, {"stream", stream}}, "abc"},
      {{{"offset", 10}, {"stream", nullptr}}, "abc"},
      {{{"offset", 10}, {"stream", 5}}, "abc"},
      {{{"offset", 10}, {"stream", json::object()}}, "abc"},
      {{{"offset", 10}, {"stream", {100, 100}}}, "abc"},
      {{{"offset", 10}, {"stream", {"1", "2", "3"}}}, "abc"},
      {{{"offset", 9}, {"stream", stream}}, "abc"},                   // before the requested range
      {{{"offset", 10}, {"stream", stream}}, std::string(101, 'x')},  // more than requested
  };
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, answers[at].first, answers[at].second);
  });
  for (; at < answers.size(); ++at) {
    CAPTURE(answers[at].first);
    CHECK(code_of(world.sandbox.processes().read(k_process, Stream::err, 10, 100, {})) == "protocol_violation");
  }
}

TEST_CASE("processes: a read sends its range, and the answer may start later") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"offset", 50}, {"stream", {100, 10, 50}}}, "abc");
  });
  const auto slice = world.sandbox.processes().read(k_process, Stream::err, 20, 100, {});
  REQUIRE(slice);
  CHECK(slice->offset == 50);
  CHECK(slice->bytes == "abc");
  CHECK(slice->stream.total == 100);
  CHECK(slice->stream.head_end == 10);
  CHECK(slice->stream.tail_start == 50);
  const auto sent = world.container.requests("read").at(0);
  CHECK(field(sent.head, "stream") == "err");
  CHECK(field(sent.head, "offset") == 20);
  CHECK(field(sent.head, "max") == 100);
}

TEST_CASE("processes: a list has the processes and the number left out") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    const json body = {{"processes", {state_of("proc_1_a"), state_of("proc_1_b")}}};
    agent.answer(request, {{"left", 3}, {"unreadable", 0}}, body.dump());
  });
  const auto list = world.sandbox.processes().list("local", 50, {});
  REQUIRE(list);
  REQUIRE(list->processes.size() == 2);
  CHECK(list->processes[1].id == "proc_1_b");
  CHECK(list->left_out == 3);
  CHECK(field(world.container.requests("list").at(0).head, "finished") == 50);
}

namespace {

json numbered(const std::string& process, std::uint64_t number, const std::string& owner = "local") {
  json state = state_of(process);
  state["number"] = number;
  state["owner"] = owner;
  return {{"process", state}, {"carried", false}, {"happened", "nothing"}};
}

}  // namespace

TEST_CASE("sandbox: a short id takes one request with owner and number") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, numbered("proc_1_a", 7)); });
  const auto found = world.sandbox.processes().find("p7", "local", {});
  REQUIRE(found);
  CHECK(found->state.id == "proc_1_a");
  CHECK(found->state.number == 7);
  const auto sent = world.container.requests("wait");
  REQUIRE(sent.size() == 1);
  CHECK(field(sent[0].head, "number") == 7);
  CHECK(field(sent[0].head, "owner") == "local");
  CHECK_FALSE(sent[0].head.contains("process"));
}

TEST_CASE("sandbox: an agent that answers a short id with another process is dropped") {
  std::vector<json> answers = {numbered("proc_1_a", 8), numbered("proc_1_a", 7, "bob"), json::object()};
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, answers[at]); });
  for (; at < answers.size(); ++at) {
    CHECK(code_of(world.sandbox.processes().find("p7", "local", {})) == "protocol_violation");
  }
  CHECK(world.container.opened() == 3);
}

TEST_CASE("sandbox: a process of another owner is reported like one that does not exist") {
  std::atomic<bool> exists{true};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    exists ? agent.answer(request, numbered(request.head.at("process"), 1, "bob"))
           : agent.refuse(request, "no_such_process");
  });
  const auto own = world.sandbox.processes().new_process_id();
  REQUIRE(own);
  for (const std::string& process : {*own, std::string("proc_1_abc")}) {
    CAPTURE(process);
    exists = true;
    const auto foreign = world.sandbox.processes().find(process, "alice", {});
    exists = false;
    const auto unknown = world.sandbox.processes().find(process, "alice", {});
    REQUIRE_FALSE(foreign);
    REQUIRE_FALSE(unknown);
    CHECK(foreign.error().code == unknown.error().code);
    CHECK(foreign.error().message == unknown.error().message);
    CHECK(foreign.error().next_step == unknown.error().next_step);
  }
}

TEST_CASE("sandbox: a lookup by short id is repeated after a lost connection") {
  FakeContainer container([](FakeAgent& agent, const wire::Frame& request, int session) {
    session == 1 ? agent.hang_up() : agent.answer(request, numbered("proc_1_a", 7));
  });
  sandbox::Sandbox sandbox(container, {}, test::silent_log());
  CHECK(sandbox.processes().find("p7", "local", {}));
  CHECK(container.opened() == 2);
}

TEST_CASE("processes: a malformed list is a violation") {
  const std::string good = R"({"processes":[]})";
  const std::vector<std::pair<json, std::string>> answers = {
      {{{"left", 0}}, ""},
      {{{"left", 0}}, "null"},
      {{{"left", 0}}, "[]"},
      {{{"left", 0}}, "{}"},
      {{{"left", 0}}, "{\"processes\":"},
      {{{"left", 0}}, R"({"processes":null})"},
      {{{"left", 0}}, R"({"processes":{}})"},
      {{{"left", 0}}, R"({"processes":[1]})"},
      {{{"left", 0}}, R"({"processes":[{}]})"},
      {{{"left", 0}}, R"({"processes":[[[[[[[[[[1]]]]]]]]]]})"},
      {{{"left", 0}}, std::string(wire::k_max_body_to_host, '[')},
      {json::object(), good},
      {{{"left", -1}}, good},
      {{{"left", "0"}}, good},
      {{{"left", 1.5}}, good},
  };
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, answers[at].first, answers[at].second);
  });
  for (; at < answers.size(); ++at) {
    CAPTURE(answers[at].first);
    CHECK(code_of(world.sandbox.processes().list("local", 50, {})) == "protocol_violation");
  }
}

TEST_CASE("processes: long input is sent in pieces, with eof in the last") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"accepted", request.body.size()}});
  });
  std::string input;
  for (int i = 0; i < 70'000; ++i) {
    input.push_back(static_cast<char>('a' + i % 26));
  }
  const auto accepted = world.sandbox.control().send_input(k_process, input, true);
  REQUIRE(accepted);
  CHECK(accepted->count == input.size());
  std::string received;
  const auto pieces = world.container.requests("input");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CHECK(pieces[i].body.size() <= 32 * 1024);
    CHECK(field(pieces[i].head, "eof") == (i + 1 == pieces.size()));
    received += pieces[i].body;
  }
  CHECK(received == input);
}

TEST_CASE("processes: eof can be sent without input") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, {{"accepted", 0}}); });
  const auto accepted = world.sandbox.control().send_input(k_process, "", true);
  REQUIRE(accepted);
  CHECK(accepted->count == 0);
  CHECK(field(world.container.requests("input").at(0).head, "eof") == true);
}

TEST_CASE("processes: sending ends when the process accepts no more input") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, {{"accepted", 1000}}); });
  const auto accepted = world.sandbox.control().send_input(k_process, std::string(100'000, 'x'), true);
  REQUIRE(accepted);
  CHECK(accepted->count == 1000);
  CHECK(world.container.count("input") == 1);
}

TEST_CASE("processes: a malformed answer to input is a violation") {
  const std::vector<json> answers = {
      json::object(),      {{"accepted", nullptr}}, {{"accepted", "4"}},
      {{"accepted", -1}},  {{"accepted", 4.0}},     {{"accepted", 5}},
      {{"accepted", {1}}}, {{"accepted", true}},    {{"accepted", std::numeric_limits<std::uint64_t>::max()}}};
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, answers[at]); });
  for (; at < answers.size(); ++at) {
    CAPTURE(answers[at]);
    CHECK(code_of(world.sandbox.control().send_input(k_process, "four", false)) == "protocol_violation");
  }
}

TEST_CASE("processes: a request to end a process has cause and grace") {
  World world;
  REQUIRE(world.sandbox.control().end(k_process, wire::Cause::cancelled, milliseconds(2000)));
  const auto sent = world.container.requests("end").at(0);
  CHECK(field(sent.head, "process") == k_process);
  CHECK(field(sent.head, "cause") == "cancelled");
  CHECK(field(sent.head, "graceMs") == 2000);
}

TEST_CASE("processes: impossible numbers in an answer to read are a violation") {
  for (const json& head :
       {json{{"offset", -1}, {"stream", {100, 100, 100}}}, json{{"offset", 10.5}, {"stream", {100, 100, 100}}},
        json{{"offset", 10}, {"stream", {1, 3, 2}}}, json{{"offset", 10}, {"stream", {-1, 3, 2}}},
        json{{"offset", 10}, {"stream", {3, 3, 3, 3}}}}) {
    CAPTURE(head);
    World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, head, "abc"); });
    CHECK(code_of(world.sandbox.processes().read(k_process, Stream::out, 10, 100, {})) == "protocol_violation");
  }
}

TEST_CASE("processes: the state of another process is a violation") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state_of("proc_1_other")}, {"carried", false}, {"happened", "nothing"}});
  });
  CHECK(code_of_wait(world.sandbox) == "protocol_violation");
}

TEST_CASE("sandbox: a wait for several processes returns with the first of them") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state_of("proc_1_b")}, {"carried", false}, {"happened", "ended"}});
  });
  const auto first = world.sandbox.processes().wait_for_any({"proc_1_a", "proc_1_b"}, seconds(5), {}, {});
  REQUIRE(first);
  CHECK(first->state.id == "proc_1_b");
  CHECK(field(world.container.requests("wait").at(0).head, "processes") == json({"proc_1_a", "proc_1_b"}));
  CHECK(code_of(world.sandbox.processes().wait_for_any({"proc_1_a", "proc_1_c"}, seconds(5), {}, {})) ==
        "protocol_violation");
}

TEST_CASE("sandbox: the listener on a port is validated") {
  const json good = {{"pid", 42}, {"command", "node x.js"}, {"own", false}, {"process", "proc_1_z"}, {"number", 2}};
  const auto with = [&](const char* key, json value) {
    json changed = good;
    changed[key] = std::move(value);
    return changed;
  };
  json lacking = good;
  lacking.erase("number");
  const std::vector<json> bad = {json(),
                                 json::array(),
                                 json::object(),
                                 with("pid", -1),
                                 with("pid", "42"),
                                 with("pid", std::int64_t{1} << 40),
                                 with("command", 7),
                                 with("own", 1),
                                 with("process", "../x"),
                                 with("number", -1),
                                 lacking};
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state_of(k_process)},
                           {"carried", false},
                           {"happened", "port"},
                           {"listener", at < bad.size() ? bad[at] : good}});
  });
  const wire::WaitCondition until{.port = 80};
  for (; at < bad.size(); ++at) {
    CAPTURE(bad[at]);
    CHECK(code_of(world.sandbox.processes().wait(k_process, seconds(5), until, {})) == "protocol_violation");
  }
  const auto snapshot = world.sandbox.processes().wait(k_process, seconds(5), until, {});
  REQUIRE(snapshot);
  REQUIRE(snapshot->listener);
  CHECK(snapshot->listener->pid == 42);
  CHECK(snapshot->listener->command == "node x.js");
  CHECK_FALSE(snapshot->listener->is_own);
  CHECK(snapshot->listener->process == "proc_1_z");
  CHECK(snapshot->listener->number == 2);
}

TEST_CASE("sandbox: a start sends the owner's highest process number") {
  std::atomic<std::uint64_t> number{7};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, numbered(request.head.at("process"), number, request.head.at("owner")));
  });
  auto request = start_request();
  request.owner = "alice";
  REQUIRE(world.sandbox.processes().start(request, milliseconds(0), {}, {}));
  number = 3;
  REQUIRE(world.sandbox.processes().start(request, milliseconds(0), {}, {}));
  request.owner = "bob";
  REQUIRE(world.sandbox.processes().start(request, milliseconds(0), {}, {}));
  request.owner = "alice";
  REQUIRE(world.sandbox.processes().start(request, milliseconds(0), {}, {}));
  const auto sent = world.container.requests("start");
  CHECK_FALSE(sent.at(0).head.contains("above"));
  CHECK(field(sent.at(1).head, "above") == 7);
  CHECK_FALSE(sent.at(2).head.contains("above"));
  CHECK(field(sent.at(3).head, "above") == 7);
}
