#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

#include "support/field.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Once;

namespace {

const std::string k_key(32, 'a');
const Once k_once{k_key, std::string(32, 'c'), 0, {7, 9}};

sandbox::StartRequest keyed_request(sandbox::Sandbox& sandbox) {
  auto request = start_request(*sandbox.processes().new_process_id({}, k_key));
  request.call = k_once.call;
  return request;
}

json process_answer(const std::string& process) {
  return {{"process", state_of(process)}, {"carried", false}, {"happened", "nothing"}};
}

json taken_answer(std::size_t accepted, bool before) {
  return {{"accepted", accepted}, {"before", before}, {"units", 4}, {"seen", {1, 2}}};
}

}  // namespace

TEST_CASE("once: the process id contains the key, and a start names its call") {
  World world;
  const auto request = keyed_request(world.sandbox);
  CHECK(request.id.ends_with("_" + k_key));
  CHECK(world.sandbox.processes().new_process_id({}, k_key).value() == request.id);
  CHECK(world.sandbox.processes().new_process_id().value() != world.sandbox.processes().new_process_id().value());
  CHECK(world.sandbox.processes().start(request, milliseconds(0), {}, {}));
  CHECK(world.sandbox.processes().start(start_request(), milliseconds(0), {}, {}));
  CHECK(field(world.container.requests("start").at(0).head, "call") == k_once.call);
  CHECK_FALSE(world.container.requests("start").at(1).head.contains("call"));
}

TEST_CASE("once: a start with a key is repeated after a lost connection") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    session == 1 ? agent.hang_up() : behave_well(agent, request);
  });
  CHECK(world.sandbox.processes().start(keyed_request(world.sandbox), milliseconds(0), {}, {}));
  CHECK(world.container.count("start") == 2);
  CHECK(world.container.count("wait") == 0);
}

TEST_CASE("once: a start with a key waits for a concurrent start") {
  std::atomic<int> asked{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    ++asked < 3 ? agent.refuse(request, "keeper_busy") : behave_well(agent, request);
  });
  CHECK(world.sandbox.processes().start(keyed_request(world.sandbox), milliseconds(0), {}, {}));
  CHECK(world.container.count("start") == 3);
  asked = 0;
  CHECK(code_of(world.sandbox.processes().start(start_request(), milliseconds(0), {}, {})) == "keeper_busy");
}

TEST_CASE("once: only a process of the same key may answer a start") {
  std::string answered;
  World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, process_answer(answered)); });
  answered = "proc_1_" + k_key;
  const auto request = keyed_request(world.sandbox);
  REQUIRE(request.id != answered);
  const auto started = world.sandbox.processes().start(request, milliseconds(0), {}, {});
  REQUIRE(started);
  CHECK(started->state.id == answered);
  for (const std::string& other : {std::string("proc_1_abc"), "proc_1_b" + k_key}) {
    answered = other;
    CHECK(code_of(world.sandbox.processes().start(request, milliseconds(0), {}, {})) == "protocol_violation");
  }
  answered = "proc_2_abc";
  CHECK(code_of(world.sandbox.processes().start(start_request("proc_1_abc"), milliseconds(0), {}, {})) ==
        "protocol_violation");
}

TEST_CASE("once: input is repeated after a loss, each piece with its offset") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    session == 1 ? agent.hang_up() : agent.answer(request, taken_answer(request.body.size(), session == 2));
  });
  const std::string input(70'000, 'x');
  const auto taken = world.sandbox.control().send_input(k_process, input, true, k_once);
  REQUIRE(taken);
  CHECK(taken->count == input.size());
  CHECK(taken->earlier == sandbox::Offsets{1, 2});
  const auto pieces = world.container.requests("input");
  REQUIRE(pieces.size() == 4);  // the first of them twice
  CHECK(pieces[0].body == pieces[1].body);
  std::size_t at = 0;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    CHECK(field(pieces[i].head, "once") ==
          json{{"key", k_once.key}, {"call", k_once.call}, {"at", at}, {"seen", {7, 9}}});
    at += pieces[i].body.size();
  }
  CHECK(at == input.size());
}

TEST_CASE("once: keys and signals are repeated after a loss") {
  World world([](FakeAgent& agent, const wire::Frame& request, int session) {
    session == 1 ? agent.hang_up() : agent.answer(request, taken_answer(1, false));
  });
  SUBCASE("keys") {
    const auto taken = world.sandbox.control().press_keys(k_process, {"up"}, k_once);
    REQUIRE(taken);
    CHECK_FALSE(taken->earlier);
    CHECK(world.container.count("keys") == 2);
  }
  SUBCASE("a signal") {
    CHECK(world.sandbox.control().signal(k_process, 2, k_once));
    CHECK(world.container.count("signal") == 2);
  }
}

TEST_CASE("once: the accepted units are requested again if the keeper has ended") {
  std::atomic<int> asked{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    ++asked == 1 ? agent.refuse(request, "process_ended") : agent.answer(request, taken_answer(0, asked == 2));
  });
  const auto before = world.sandbox.control().taken(k_process, k_once);
  REQUIRE(before);
  REQUIRE(*before);
  CHECK((*before)->count == 4);
  CHECK((*before)->earlier == sandbox::Offsets{1, 2});
  const auto none = world.sandbox.control().taken(k_process, k_once);
  REQUIRE(none);
  CHECK_FALSE(*none);
}

TEST_CASE("once: a malformed answer is a violation") {
  std::vector<json> answers(7, taken_answer(4, true));
  answers[0].erase("before");
  answers[1]["before"] = 1;
  answers[2].erase("seen");
  answers[3]["seen"] = {1};
  answers[4]["seen"] = {-1, 0};
  answers[5]["accepted"] = 5;
  answers[6]["accepted"] = "4";
  std::atomic<std::size_t> at{0};
  World world([&](FakeAgent& agent, const wire::Frame& request) { agent.answer(request, answers[at]); });
  for (; at < answers.size(); ++at) {
    CAPTURE(answers[at]);
    CHECK(code_of(world.sandbox.control().send_input(k_process, "four", false, k_once)) == "protocol_violation");
    if (field(answers[at], "accepted") == 4) {
      CHECK(code_of(world.sandbox.control().taken(k_process, k_once)) == "protocol_violation");
    }
  }
  answers = {taken_answer(0, true)};
  answers[0]["units"] = -1;
  at = 0;
  CHECK(code_of(world.sandbox.control().taken(k_process, k_once)) == "protocol_violation");
}
