#include "tools/client_notices.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using tools::ClientNotices;

namespace {

/// An agent whose processes run until the test ends them. A wait without a timeout is answered at once.
class Processes {
 public:
  void react(FakeAgent& agent, const wire::Frame& request) {
    const std::lock_guard lock(m_mutex);
    for (const std::string& process : std::exchange(m_ending, {})) {
      for (auto waiting = m_waiting.find(process); waiting != m_waiting.end(); waiting = m_waiting.find(process)) {
        agent.answer(waiting->second, reply(process, true));
        m_waiting.erase(waiting);
      }
      m_ended.insert(process);
    }
    if (request.head.at("op") != "wait") {
      agent.answer(request);
      return;
    }
    const std::string process = request.head.at("process");
    if (request.head.at("timeoutMs") == 0 || m_ended.contains(process)) {
      agent.answer(request, reply(process, m_ended.contains(process)));
    } else {
      m_waiting.emplace(process, request);
    }
  }
  /// The agent reports it before it answers the next request.
  void end(const std::string& process) {
    const std::lock_guard lock(m_mutex);
    m_ending.push_back(process);
  }

 private:
  static json reply(const std::string& process, bool ended) {
    json state = state_of(process);
    state["number"] = 3;
    if (ended) {
      state["phase"] = "closed";
      state["end"] = "exit";
      state["endCode"] = 1;
    }
    return {{"process", state}, {"carried", false}, {"happened", ended ? "ended" : "nothing"}};
  }

  std::mutex m_mutex;
  std::multimap<std::string, wire::Frame> m_waiting;
  std::vector<std::string> m_ending;
  std::set<std::string> m_ended;
};

/// One request to the agent and back.
bool round_trip(sandbox::Sandbox& sandbox) {
  return sandbox.ask({{"op", "anything"}}, {}, k_patience, {}).has_value();
}

/// One server with one container.
struct Bench {
  Processes processes;
  World world{[this](FakeAgent& agent, const wire::Frame& request) { processes.react(agent, request); }};
  std::shared_ptr<ClientNotices> notices = ClientNotices::make();

  [[nodiscard]] wire::ProcessState state(const std::string& process) {
    const auto snapshot = world.sandbox.wait(process, milliseconds(0), {}, {});
    REQUIRE(snapshot);
    return snapshot->state;
  }
  /// A call that leaves a process running.
  void start(const std::string& client, const std::string& process) {
    notices->show(client, "r1", world.sandbox, state(process), true);
  }
  /// A call of the client that has to do with no process: what it is told, each confirmed.
  std::vector<std::string> next_reply(const std::string& client) {
    (void)round_trip(world.sandbox);
    std::vector<std::string> told;
    if (const auto delivery = notices->take(client, "r1", world.sandbox)) {
      for (const tools::Notice& notice : delivery->notices()) {
        told.push_back(notice.sentence);
      }
      delivery->confirm();
    }
    return told;
  }
};

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("notices: the end of a process is told once, to the client that started it") {
  Bench bench;
  bench.start("alice", "proc_1_a");
  CHECK(bench.next_reply("alice").empty());
  bench.processes.end("proc_1_a");
  CHECK(bench.next_reply("bob").empty());
  CHECK(bench.next_reply("alice") == Sentences{"p3 `make` ended, exit code 1"});
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: an end that the client has been shown is not told") {
  Bench bench;
  bench.start("alice", "proc_1_a");
  bench.processes.end("proc_1_a");
  SUBCASE("before the agent reported it") {
    bench.notices->show("alice", "r1", bench.world.sandbox, bench.state("proc_1_a"), false);
  }
  SUBCASE("after that") {
    (void)round_trip(bench.world.sandbox);
    bench.notices->show("alice", "r1", bench.world.sandbox, bench.state("proc_1_a"), false);
  }
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: a process that another call shows is not watched for that client") {
  Bench bench;
  bench.notices->show("bob", "r1", bench.world.sandbox, bench.state("proc_1_a"), false);
  bench.processes.end("proc_1_a");
  CHECK(bench.next_reply("bob").empty());
}

TEST_CASE("notices: nothing is asked of the container while no process was left running") {
  Bench bench;
  (void)bench.world.sandbox.hello();
  const int before = bench.world.container.count("wait");
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(bench.notices->take("alice", "r1", bench.world.sandbox));
  }
  CHECK(bench.world.container.count("wait") == before);
  bench.start("alice", "proc_1_a");
  const int watching = bench.world.container.count("wait");
  for (int i = 0; i < 10; ++i) {
    CHECK(bench.next_reply("alice").empty());
  }
  CHECK(bench.world.container.count("wait") <= watching + 1);  // the watch itself may have been on its way
}

TEST_CASE("notices: a reply that was not delivered leaves its notices for the next one, in order") {
  Bench bench;
  bench.notices->add("alice", "one");
  {
    const auto lost = bench.notices->take("alice", "r1", bench.world.sandbox);
    REQUIRE(lost);
    bench.notices->add("alice", "two");
    const auto meanwhile = bench.notices->take("alice", "r1", bench.world.sandbox);
    REQUIRE(meanwhile);
    CHECK(meanwhile->notices().size() == 1);
    meanwhile->confirm();
    bench.notices->add("alice", "three");
  }
  CHECK(bench.next_reply("alice") == Sentences{"one", "three"});
}

TEST_CASE("notices: an end that an undelivered reply has shown is told later") {
  Bench bench;
  bench.start("alice", "proc_1_a");
  bench.processes.end("proc_1_a");
  bench.notices->show("alice", "r2", bench.world.sandbox, bench.state("proc_1_a"), false);
  CHECK(bench.next_reply("alice").empty());  // of another call, meanwhile
  {
    const auto lost = bench.notices->take("alice", "r2", bench.world.sandbox);
    REQUIRE(lost);
    CHECK(lost->notices().empty());
  }
  CHECK(bench.next_reply("alice") == Sentences{"p3 `make` ended, exit code 1"});
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: the next connection is asked for what the lost one was to report") {
  Processes processes;
  std::atomic<bool> drop{false};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    drop.exchange(false) ? agent.hang_up() : processes.react(agent, request);
  });
  const auto notices = ClientNotices::make();
  const auto snapshot = world.sandbox.wait("proc_1_a", milliseconds(0), {}, {});
  REQUIRE(snapshot);
  notices->show("alice", "r1", world.sandbox, snapshot->state, true);
  drop = true;
  CHECK_FALSE(round_trip(world.sandbox));
  REQUIRE(world.sandbox.hello());
  CHECK_FALSE(notices->take("alice", "r1", world.sandbox));
  processes.end("proc_1_a");
  std::shared_ptr<tools::NoticeDelivery> delivery;
  for (const auto deadline = Deadline::after(k_patience); !delivery && !deadline.passed();) {
    (void)round_trip(world.sandbox);
    delivery = notices->take("alice", "r1", world.sandbox);
  }
  REQUIRE(delivery);
  CHECK(delivery->notices().at(0).sentence == "p3 `make` ended, exit code 1");
  delivery->confirm();
}

TEST_CASE("notices: clients, watches and sentences are bounded") {
  Bench bench;
  for (int i = 0; i < 1000; ++i) {
    bench.notices->add("alice", fmt::format("sentence {}", i));
  }
  const auto told = bench.next_reply("alice");
  CHECK(told.size() == 32);
  CHECK(told.back() == "sentence 999");
  for (int i = 0; i < 1000; ++i) {
    bench.notices->add(fmt::format("client {}", i), "hello");
  }
  CHECK(bench.next_reply("client 0").empty());
  CHECK(bench.next_reply("client 999") == Sentences{"hello"});
}
