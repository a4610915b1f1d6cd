#include "sandbox/sandbox.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <latch>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "unit/sandbox/fake_agent.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Condition;
using sandbox::Sandbox;
using sandbox::Stream;

namespace {

const std::string k_process = "proc_1_abc";

Log& silent_log() {
  static Log log(-1, LogLevel::off, LogFormat::text);
  return log;
}

/// Answers start and wait with a process that runs, and everything else with nothing.
void behave_well(FakeAgent& agent, const wire::Frame& request) {
  const std::string op = request.head.at("op");
  if (op == "start" || op == "wait") {
    agent.answer(request,
                 {{"process", state_of(request.head.at("process"))}, {"carried", false}, {"happened", "nothing"}});
  } else {
    agent.answer(request);
  }
}

/// A sandbox over a container whose agent a test has scripted.
struct World {
  FakeContainer container;
  Sandbox sandbox{container, {}, silent_log()};

  template <typename React>
  explicit World(React react) : container(react) {}
  World() : container(behave_well) {}
};

sandbox::StartRequest start_request(const std::string& id = k_process) {
  sandbox::StartRequest request;
  request.id = id;
  request.command = "make";
  request.cwd = "/app";
  return request;
}

template <typename T>
std::string code_of(const Result<T>& result) {
  return result ? "success" : result.error().code;
}

std::string code_of_wait(Sandbox& sandbox, const std::string& process = k_process) {
  return code_of(sandbox.wait(process, milliseconds(0), {}, {}));
}

}  // namespace

TEST_CASE("a sandbox connects when it is first used and not before") {
  World world;
  CHECK(world.sandbox.container_name() == "box");
  CHECK(world.sandbox.workdir() == "/app");
  CHECK(world.container.prepared() == 0);
  const auto hello = world.sandbox.hello();
  REQUIRE(hello);
  CHECK(hello->version == "1.2.3");
  CHECK(world.container.prepared() == 1);
}

TEST_CASE("many threads share one connection") {
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

TEST_CASE("a container that cannot be had is the caller's error, and is looked for again at the next call") {
  World world;
  world.container.set_prepare_error(Error{"no_such_container", "there is no container 'box'", "Create it"});
  CHECK(code_of(world.sandbox.hello()) == "no_such_container");
  CHECK(code_of(world.sandbox.new_process_id()) == "no_such_container");
  CHECK(code_of(world.sandbox.list("local", 50)) == "no_such_container");
  CHECK(code_of_wait(world.sandbox) == "no_such_container");
  CHECK(world.container.opened() == 0);
  world.container.set_prepare_error(std::nullopt);
  CHECK(code_of_wait(world.sandbox) == "success");
}

TEST_CASE("while a call connects, another that is cancelled does not wait for it") {
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
  CHECK(code_of(world.sandbox.wait(k_process, milliseconds(0), {}, source.get_token())) == "cancelled");
  released.set_value();
  CHECK(first.get() == "success");
}

TEST_CASE("a channel that throws fails the call and not those after it") {
  World world;
  world.container.set_before_prepare([] { throw std::runtime_error("no threads left"); });
  const auto failed = world.sandbox.hello();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == "internal_error");
  CHECK(failed.error().message.find("no threads left") != std::string::npos);
  world.container.set_before_prepare([] {});
  CHECK(world.sandbox.hello());
}

TEST_CASE("calls connect one at a time, and those who wait share the failure") {
  World world;
  world.container.set_prepare_error(Error{"engine_hung", "the engine does not answer", ""});
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

TEST_CASE("an agent that is in none of its places is put into the first that takes it") {
  World world;
  SUBCASE("the image's own folder") {
    world.container.set_usable_bases({"/", "/tmp", "/app"});
  }
  SUBCASE("the temporary folder") {
    world.container.set_usable_bases({"/tmp", "/app"});
  }
  SUBCASE("the workdir") {
    world.container.set_usable_bases({"/app"});
  }
  CHECK(world.sandbox.hello());
  CHECK(world.container.placed().size() == 1);
  CHECK(world.container.opened() == 1);
}

TEST_CASE("an agent that fits nowhere is an error that names every place and the way out") {
  World world;
  world.container.set_usable_bases({});
  const auto hello = world.sandbox.hello();
  REQUIRE_FALSE(hello);
  CHECK(hello.error().code == "agent_not_placed");
  for (const char* place : {"/var/lib/dockbridge/agent-", "/tmp/.dockbridge-agent/agent-",
                            "/app/.dockbridge-agent/agent-", "read-only file system"}) {
    CHECK(hello.error().message.find(place) != std::string::npos);
  }
  CHECK(hello.error().next_step.find("/app") != std::string::npos);
}

TEST_CASE("an agent that starts and gives up is not put anywhere else") {
  World world;
  world.container.set_greeting(
      greeting({{"fatal", {{"code", "no_state_directory"}, {"message", "nowhere"}, {"nextStep", "Mount one"}}}}));
  CHECK(code_of(world.sandbox.hello()) == "no_state_directory");
  CHECK(world.container.opened() == 1);
  CHECK(world.container.placed().empty());
}

TEST_CASE("an agent that breaks the protocol in its greeting is an error and not a crash") {
  World world;
  world.container.set_greeting(greeting(json::object()));
  CHECK(code_of(world.sandbox.hello()) == "protocol_violation");
  world.container.set_greeting(greeting(hello_head()));
  CHECK(code_of(world.sandbox.hello()) == "success");
}

TEST_CASE("after a loss the next call connects anew") {
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

TEST_CASE("a wait and a read that lose the agent are repeated once") {
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
    const auto slice = world.sandbox.read(k_process, Stream::out, 0, 10);
    REQUIRE(slice);
    CHECK(slice->bytes == "abc");
  }
  CHECK(world.container.count(op) == 2);
  CHECK(world.container.opened() == 2);
}

TEST_CASE("an agent that is lost every time is an error and not a loop") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  CHECK(code_of_wait(world.sandbox) == "connection_lost");
  CHECK(world.container.count("wait") == 2);
}

TEST_CASE("input is never sent twice: nobody knows whether the process has had it") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  CHECK(code_of(world.sandbox.send_input(k_process, "yes\n", false)) == "connection_lost");
  CHECK(world.container.count("input") == 1);
}

TEST_CASE("a start that loses the agent looks the process up and does not start it twice") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    if (session == 1) {
      agent.hang_up();
    } else {
      behave_well(agent, request);
    }
  });
  const auto started = world.sandbox.start(start_request(), milliseconds(0), {}, {});
  REQUIRE(started);
  CHECK(started->state.id == k_process);
  CHECK(world.container.count("start") == 1);
  REQUIRE(world.container.count("wait") == 1);
  CHECK(world.container.requests("wait")[0].head["process"] == k_process);
}

TEST_CASE("a start that was lost on its way is made again under the same id") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    if (session == 1) {
      agent.hang_up();
    } else if (request.head.at("op") == "wait") {
      agent.refuse(request, "no_such_process");
    } else {
      behave_well(agent, request);
    }
  });
  // Of this run of the container; of another run it would be gone.
  const auto id = world.sandbox.new_process_id();
  REQUIRE(id);
  CHECK(world.sandbox.start(start_request(*id), milliseconds(0), {}, {}));
  const auto starts = world.container.requests("start");
  REQUIRE(starts.size() == 2);
  for (const auto& start : starts) {
    CHECK(start.head["process"] == *id);
    CHECK(start.body == "make");
  }
}

TEST_CASE("a start that cannot be looked up is not made again") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    if (session == 1 || request.head.at("op") == "wait") {
      agent.hang_up();
    } else {
      behave_well(agent, request);
    }
  });
  CHECK(code_of(world.sandbox.start(start_request(), milliseconds(0), {}, {})) == "connection_lost");
  CHECK(world.container.count("start") == 1);
}

TEST_CASE("a start that the container did not survive is not made again") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  world.container.set_condition(Condition::gone);
  CHECK(code_of(world.sandbox.start(start_request(), milliseconds(0), {}, {})) == "container_replaced");
  CHECK(world.container.count("start") == 1);
  CHECK(world.container.count("wait") == 0);
}

TEST_CASE("a start brings the agent command, environment and input") {
  World world;
  auto request = start_request();
  request.environment = {{"A", "1"}, {"B", "x=y"}};
  request.input = "the input";
  request.owner = "alice";
  request.rationale = "to see";
  request.max_runtime = seconds(5);
  REQUIRE(world.sandbox.start(request, milliseconds(1500), {}, {}));
  const auto sent = world.container.requests("start").at(0);
  CHECK(sent.body == std::string("makeA=1\0B=x=y\0the input", 23));
  CHECK(sent.head["commandBytes"] == 4);
  CHECK(sent.head["environmentBytes"] == 10);
  CHECK(sent.head["stdin"] == "body");
  CHECK(sent.head["cwd"] == "/app");
  CHECK(sent.head["owner"] == "alice");
  CHECK(sent.head["rationale"] == "to see");
  CHECK(sent.head["maxRuntimeMs"] == 5000);
  CHECK(sent.head["timeoutMs"] == 1500);

  CHECK_FALSE(sent.head.contains("user"));

  request.input.reset();
  request.user = "1000:1000";
  REQUIRE(world.sandbox.start(request, milliseconds(0), {}, {}));
  const auto second = world.container.requests("start").at(1);
  CHECK(second.head["stdin"] == "pipe");
  CHECK(second.head["user"] == "1000:1000");
}

TEST_CASE("a call that is told to stop returns, and the sandbox stays usable") {
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
    return code_of(world.sandbox.start(start_request(), seconds(60), {}, source.get_token()));
  });
  asked.wait();
  source.request_stop();
  CHECK(start.get() == "cancelled");
  CHECK(code_of_wait(world.sandbox) == "success");
  CHECK(world.container.opened() == 1);
}

TEST_CASE("short output rides along, and is cut into its two streams") {
  json state = state_of(k_process);
  state["out"] = {3, 3, 3};
  state["err"] = {5, 5, 5};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state}, {"carried", true}, {"happened", "nothing"}}, "outerror");
  });
  const auto snapshot = world.sandbox.wait(k_process, milliseconds(0), {}, {});
  REQUIRE(snapshot);
  CHECK(snapshot->whole);
  CHECK(snapshot->out == "out");
  CHECK(snapshot->err == "error");
}

TEST_CASE("a wait tells the agent what to return at") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state_of(k_process)},
                           {"carried", false},
                           {"happened", "pattern"},
                           {"line", "ready"},
                           {"searched", {3, 4}}});
  });
  sandbox::Until until{.known = sandbox::Offsets{7, 9}, .pattern = "x", .search_from = {1, 2}, .port = 80};
  until.idle = milliseconds(500);
  until.input = true;
  const auto snapshot = world.sandbox.wait(k_process, milliseconds(250), until, {});
  REQUIRE(snapshot);
  CHECK(snapshot->happened == wire::Happened::pattern);
  CHECK(snapshot->line == "ready");
  CHECK(snapshot->searched == sandbox::Offsets{3, 4});
  const auto sent = world.container.requests("wait").at(0);
  CHECK(sent.head["timeoutMs"] == 250);
  CHECK(sent.head["until"] ==
        json::parse(R"({"known":[7,9],"pattern":"x","from":[1,2],"port":80,"idleMs":500,"input":true})"));
}

TEST_CASE("an agent that answers a wait before its time, or with what nobody asked for, is not believed") {
  for (const char* happened : {"nothing", "grew", "pattern", "port", "idle", "input"}) {
    CAPTURE(happened);
    World world([happened](FakeAgent& agent, const wire::Frame& request) {
      agent.answer(request, {{"process", state_of(k_process)}, {"carried", false}, {"happened", happened}});
    });
    CHECK(code_of(world.sandbox.wait(k_process, seconds(60), {}, {})) == "protocol_violation");
  }
}

TEST_CASE("an argument that is too long for a head is refused here, and the connection lives") {
  World world;
  CHECK(code_of(world.sandbox.wait(k_process, milliseconds(0), {.pattern = std::string(70'000, 'x')}, {})) ==
        "too_long");
  CHECK(world.sandbox.wait(k_process, milliseconds(0), {}, {}));
  CHECK(world.container.opened() == 1);
}

TEST_CASE("a screen is checked before it is believed") {
  const auto screen_for = [](const json& about) {
    World world([&about](FakeAgent& agent, const wire::Frame& request) {
      agent.answer(request, {{"screen", about}}, "text");
    });
    return world.sandbox.screen(k_process);
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
                                                                            {"alternate", nullptr}}) {
    json bad = good;
    bad[key] = value;
    CHECK(code_of(screen_for(bad)) == "protocol_violation");
  }
  CHECK(code_of(screen_for(json())) == "protocol_violation");
  CHECK(code_of(screen_for({1, 2})) == "protocol_violation");
}

TEST_CASE("an answer to wait or start of a wrong shape is a violation") {
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
    CHECK(code_of(world.sandbox.start(start_request(), milliseconds(0), {}, {})) == "protocol_violation");
  }
}

TEST_CASE("an answer to read of a wrong shape is a violation") {
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
      {{{"offset", 9}, {"stream", stream}}, "abc"},                   // before what was asked for
      {{{"offset", 10}, {"stream", stream}}, std::string(101, 'x')},  // more than was asked for
  };
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, answers[at].first, answers[at].second);
  });
  for (; at < answers.size(); ++at) {
    CAPTURE(answers[at].first);
    CHECK(code_of(world.sandbox.read(k_process, Stream::err, 10, 100)) == "protocol_violation");
  }
}

TEST_CASE("a read tells the agent what is wanted, and may come from further on") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"offset", 50}, {"stream", {100, 10, 50}}}, "abc");
  });
  const auto slice = world.sandbox.read(k_process, Stream::err, 20, 100);
  REQUIRE(slice);
  CHECK(slice->offset == 50);
  CHECK(slice->bytes == "abc");
  CHECK(slice->stream.total == 100);
  CHECK(slice->stream.head_end == 10);
  CHECK(slice->stream.tail_start == 50);
  const auto sent = world.container.requests("read").at(0);
  CHECK(sent.head["stream"] == "err");
  CHECK(sent.head["offset"] == 20);
  CHECK(sent.head["max"] == 100);
}

TEST_CASE("a list brings the processes and how many were left out") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    const json body = {{"processes", {state_of("proc_1_a"), state_of("proc_1_b")}}};
    agent.answer(request, {{"left", 3}, {"unreadable", 0}}, body.dump());
  });
  const auto list = world.sandbox.list("local", 50);
  REQUIRE(list);
  REQUIRE(list->processes.size() == 2);
  CHECK(list->processes[1].id == "proc_1_b");
  CHECK(list->left_out == 3);
}

TEST_CASE("a list of a wrong shape is a violation") {
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
    CHECK(code_of(world.sandbox.list("local", 50)) == "protocol_violation");
  }
}

TEST_CASE("long input goes in pieces, with the end after the last") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"accepted", request.body.size()}});
  });
  std::string input;
  for (int i = 0; i < 70'000; ++i) {
    input.push_back(static_cast<char>('a' + i % 26));
  }
  const auto accepted = world.sandbox.send_input(k_process, input, true);
  REQUIRE(accepted);
  CHECK(*accepted == input.size());
  std::string received;
  const auto pieces = world.container.requests("input");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CHECK(pieces[i].body.size() <= 32 * 1024);
    CHECK(pieces[i].head["eof"] == (i + 1 == pieces.size()));
    received += pieces[i].body;
  }
  CHECK(received == input);
}

TEST_CASE("the end of input alone is sent too") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, {{"accepted", 0}}); });
  const auto accepted = world.sandbox.send_input(k_process, "", true);
  REQUIRE(accepted);
  CHECK(*accepted == 0);
  CHECK(world.container.requests("input").at(0).head["eof"] == true);
}

TEST_CASE("input that a process does not take is not sent further") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, {{"accepted", 1000}}); });
  const auto accepted = world.sandbox.send_input(k_process, std::string(100'000, 'x'), true);
  REQUIRE(accepted);
  CHECK(*accepted == 1000);
  CHECK(world.container.count("input") == 1);
}

TEST_CASE("an answer to input of a wrong shape is a violation") {
  const std::vector<json> answers = {
      json::object(),      {{"accepted", nullptr}}, {{"accepted", "4"}},
      {{"accepted", -1}},  {{"accepted", 4.0}},     {{"accepted", 5}},
      {{"accepted", {1}}}, {{"accepted", true}},    {{"accepted", std::numeric_limits<std::uint64_t>::max()}}};
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, answers[at]); });
  for (; at < answers.size(); ++at) {
    CAPTURE(answers[at]);
    CHECK(code_of(world.sandbox.send_input(k_process, "four", false)) == "protocol_violation");
  }
}

TEST_CASE("an order to end a process tells cause and grace") {
  World world;
  REQUIRE(world.sandbox.end(k_process, wire::Cause::cancelled, milliseconds(2000)));
  const auto sent = world.container.requests("end").at(0);
  CHECK(sent.head["process"] == k_process);
  CHECK(sent.head["cause"] == "cancelled");
  CHECK(sent.head["graceMs"] == 2000);
}

TEST_CASE("what stands behind a lost connection is told, with the next step") {
  World world([](FakeAgent& agent, const wire::Frame&) { agent.hang_up(); });
  const auto lost_while = [&](Result<Condition> condition) {
    world.container.set_condition(std::move(condition));
    const auto answer = world.sandbox.list("local", 50);
    REQUIRE_FALSE(answer);
    CHECK_FALSE(answer.error().next_step.empty());
    return answer.error();
  };
  CHECK(lost_while(Condition::running).code == "connection_lost");
  CHECK(lost_while(Condition::paused).code == "container_paused");
  CHECK(lost_while(Condition::paused).next_step == "docker unpause box");
  CHECK(lost_while(Condition::stopped).code == "container_stopped");
  CHECK(lost_while(Condition::gone).code == "container_replaced");
  CHECK(lost_while(fail("no_engine", "the engine is gone", "Start it")).code == "no_engine");
}

TEST_CASE("a container that stops while the agent starts is the better explanation") {
  World world;
  world.container.set_usable_bases({});
  world.container.set_condition(Condition::stopped);
  CHECK(code_of(world.sandbox.hello()) == "container_stopped");
}

TEST_CASE("process ids carry the run of their container and are never the same") {
  World world;
  const sandbox::ContainerRun first{"id", "2026-01-01T00:00:00Z"};
  world.container.set_run(first);
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto id = world.sandbox.new_process_id();
    REQUIRE(id);
    REQUIRE(wire::is_process_id(*id));
    CHECK(id->starts_with("proc_" + std::to_string(first.generation()) + "_"));
    CHECK(ids.insert(*id).second);
  }
}

TEST_CASE("a restart or a replacement of the container makes another generation") {
  const sandbox::ContainerRun run{"id", "2026-01-01T00:00:00Z"};
  const sandbox::ContainerRun restarted{"id", "2026-01-01T00:00:01Z"};
  const sandbox::ContainerRun replaced{"other", "2026-01-01T00:00:00Z"};
  CHECK(run.generation() == sandbox::ContainerRun(run).generation());
  CHECK(run.generation() != restarted.generation());
  CHECK(run.generation() != replaced.generation());
}

TEST_CASE("what is no process id is refused without asking the container") {
  World world;
  for (const std::string id :
       {"", "1234", "proc_1", "proc_x_abc", "proc_1_../../etc", "proc_99999999999999999999_a", "proc_4294967296_a"}) {
    CAPTURE(id);
    CHECK(code_of_wait(world.sandbox, id) == "bad_process_id");
    CHECK(code_of(world.sandbox.read(id, Stream::out, 0, 1)) == "bad_process_id");
    CHECK(code_of(world.sandbox.send_input(id, "x", false)) == "bad_process_id");
    CHECK(code_of(world.sandbox.end(id, wire::Cause::terminated, {})) == "bad_process_id");
  }
  CHECK(world.container.prepared() == 0);
}

TEST_CASE("a process of another run is gone, one of this run does not exist") {
  World world([](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, "no_such_process"); });
  const auto own = world.sandbox.new_process_id();
  REQUIRE(own);
  CHECK(code_of_wait(world.sandbox, *own) == "no_such_process");
  CHECK(code_of_wait(world.sandbox, "proc_1_abc") == "process_gone");
}

TEST_CASE("an answer to a read with impossible numbers is a violation") {
  for (const json& head :
       {json{{"offset", -1}, {"stream", {100, 100, 100}}}, json{{"offset", 10.5}, {"stream", {100, 100, 100}}},
        json{{"offset", 10}, {"stream", {1, 3, 2}}}, json{{"offset", 10}, {"stream", {-1, 3, 2}}},
        json{{"offset", 10}, {"stream", {3, 3, 3, 3}}}}) {
    CAPTURE(head);
    World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, head, "abc"); });
    CHECK(code_of(world.sandbox.read(k_process, Stream::out, 10, 100)) == "protocol_violation");
  }
}

TEST_CASE("the state of another process than asked for is a violation") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", state_of("proc_1_other")}, {"carried", false}, {"happened", "nothing"}});
  });
  CHECK(code_of_wait(world.sandbox) == "protocol_violation");
}

TEST_CASE("a violation in an answer drops the connection") {
  World world([](FakeAgent& agent, const wire::Frame& request) {
    agent.answer(request, {{"process", 5}, {"carried", false}, {"happened", "nothing"}});
  });
  CHECK(code_of_wait(world.sandbox) == "protocol_violation");
  CHECK(code_of_wait(world.sandbox) == "protocol_violation");
  CHECK(world.container.opened() == 2);
}
