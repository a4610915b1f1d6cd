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
using tools::ClientId;
using tools::ClientNotices;
using tools::NoticeDelivery;

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

constexpr std::size_t k_ample_room = 100'000;

/// One request to the agent and back.
bool round_trip(sandbox::Sandbox& sandbox) {
  return sandbox.link().ask({{"op", "anything"}}, {}, k_patience, {}).has_value();
}

/// One server with one container.
struct Bench {
  Processes processes;
  World world{[this](FakeAgent& agent, const wire::Frame& request) { processes.react(agent, request); }};
  std::shared_ptr<ClientNotices> notices = ClientNotices::make();
  Clock::time_point now{};

  [[nodiscard]] wire::ProcessState state(const std::string& process) {
    const auto snapshot = world.sandbox.processes().wait(process, milliseconds(0), {}, {});
    REQUIRE(snapshot);
    return snapshot->state;
  }
  /// A call that leaves a process running.
  void start(const std::string& client, const std::string& process) {
    notices->show(id(client), "r1", world.sandbox, state(process), true);
  }
  static ClientId id(const std::string& client) { return {"owner", client}; }
  std::shared_ptr<NoticeDelivery> take(const std::string& client, const std::string& call = "r1",
                                       std::size_t room = k_ample_room) {
    return notices->take(id(client), call, world.sandbox, room, now);
  }
  /// A call of the client about no process. Returns the notices in its reply, and confirms each.
  std::vector<std::string> next_reply(const std::string& client) {
    (void)round_trip(world.sandbox);
    std::vector<std::string> told;
    if (const auto delivery = take(client)) {
      told = delivery->sentences();
      delivery->confirm();
    }
    return told;
  }
};

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("notices: the client that started a process is notified of its end once") {
  Bench bench;
  bench.start("alice", "proc_1_a");
  CHECK(bench.next_reply("alice").empty());
  bench.processes.end("proc_1_a");
  CHECK(bench.next_reply("bob").empty());
  CHECK(bench.next_reply("alice") == Sentences{"p3 `make` ended, exit code 1"});
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: an end that the client was shown needs no notice") {
  Bench bench;
  bench.start("alice", "proc_1_a");
  bench.processes.end("proc_1_a");
  SUBCASE("before the agent reported it") {
    bench.notices->show(Bench::id("alice"), "r1", bench.world.sandbox, bench.state("proc_1_a"), false);
  }
  SUBCASE("after that") {
    (void)round_trip(bench.world.sandbox);
    bench.notices->show(Bench::id("alice"), "r1", bench.world.sandbox, bench.state("proc_1_a"), false);
  }
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: a process that another call shows is not watched for that client") {
  Bench bench;
  bench.notices->show(Bench::id("bob"), "r1", bench.world.sandbox, bench.state("proc_1_a"), false);
  bench.processes.end("proc_1_a");
  CHECK(bench.next_reply("bob").empty());
}

TEST_CASE("notices: without a running process the container gets no request") {
  Bench bench;
  (void)bench.world.sandbox.hello();
  const int before = bench.world.container.count("wait");
  for (int i = 0; i < 10; ++i) {
    CHECK_FALSE(bench.take("alice"));
  }
  CHECK(bench.world.container.count("wait") == before);
  bench.start("alice", "proc_1_a");
  const int watching = bench.world.container.count("wait");
  for (int i = 0; i < 10; ++i) {
    CHECK(bench.next_reply("alice").empty());
  }
  CHECK(bench.world.container.count("wait") <= watching + 1);  // the watch itself may have been sent
}

TEST_CASE("notices: an undelivered reply leaves its notices to the next, in order") {
  Bench bench;
  bench.notices->add(Bench::id("alice"), "one");
  {
    const auto lost = bench.take("alice");
    REQUIRE(lost);
    bench.notices->add(Bench::id("alice"), "two");
    const auto meanwhile = bench.take("alice");
    REQUIRE(meanwhile);
    CHECK(meanwhile->sentences().size() == 1);
    meanwhile->confirm();
    bench.notices->add(Bench::id("alice"), "three");
  }
  CHECK(bench.next_reply("alice") == Sentences{"one", "three"});
}

TEST_CASE("notices: an end in an undelivered reply is reported later") {
  Bench bench;
  bench.start("alice", "proc_1_a");
  bench.processes.end("proc_1_a");
  bench.notices->show(Bench::id("alice"), "r2", bench.world.sandbox, bench.state("proc_1_a"), false);
  CHECK(bench.next_reply("alice").empty());  // of another call, meanwhile
  {
    const auto lost = bench.take("alice", "r2");
    REQUIRE(lost);
    CHECK(lost->sentences().empty());
  }
  CHECK(bench.next_reply("alice") == Sentences{"p3 `make` ended, exit code 1"});
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: watches of a lost connection move to the next one") {
  Processes processes;
  std::atomic<bool> drop{false};
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    drop.exchange(false) ? agent.hang_up() : processes.react(agent, request);
  });
  const auto notices = ClientNotices::make();
  const auto snapshot = world.sandbox.processes().wait("proc_1_a", milliseconds(0), {}, {});
  REQUIRE(snapshot);
  notices->show(Bench::id("alice"), "r1", world.sandbox, snapshot->state, true);
  drop = true;
  CHECK_FALSE(round_trip(world.sandbox));
  REQUIRE(world.sandbox.hello());
  CHECK_FALSE(notices->take(Bench::id("alice"), "r1", world.sandbox, k_ample_room, {}));
  processes.end("proc_1_a");
  std::shared_ptr<NoticeDelivery> delivery;
  for (const auto deadline = Deadline::after(k_patience); !delivery && !deadline.passed();) {
    (void)round_trip(world.sandbox);
    delivery = notices->take(Bench::id("alice"), "r1", world.sandbox, k_ample_room, {});
  }
  REQUIRE(delivery);
  CHECK(delivery->sentences().at(0) == "p3 `make` ended, exit code 1");
  delivery->confirm();
}

TEST_CASE("notices: an unconfirmed notice is shown again after the patience, and once only") {
  Bench bench;
  bench.notices->add(Bench::id("alice"), "one");
  const auto stuck = bench.take("alice");
  REQUIRE(stuck);
  bench.notices->add(Bench::id("alice"), "two");
  bench.now += ClientNotices::k_patience;
  CHECK(bench.next_reply("alice") == Sentences{"one", "two"});
  SUBCASE("the client never comes back") {}
  SUBCASE("the client resumes the stream later") {
    stuck->confirm();
  }
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: within the patience a notice is not shown again") {
  Bench bench;
  bench.notices->add(Bench::id("alice"), "one");
  const auto slow = bench.take("alice");
  REQUIRE(slow);
  bench.now += ClientNotices::k_patience - milliseconds(1);
  CHECK_FALSE(bench.take("alice"));
}

TEST_CASE("notices: a lost notice of an end that was shown is not repeated") {
  Bench bench;
  bench.start("alice", "proc_1_a");
  bench.processes.end("proc_1_a");
  (void)round_trip(bench.world.sandbox);
  {
    const auto lost = bench.take("alice");
    REQUIRE(lost);
    CHECK(lost->sentences().size() == 1);
    bench.notices->show(Bench::id("alice"), "r1", bench.world.sandbox, bench.state("proc_1_a"), false);
    CHECK(bench.next_reply("alice").empty());
  }
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: sentences are bounded, and dropped ones are counted") {
  Bench bench;
  for (int i = 0; i < 1000; ++i) {
    bench.notices->add(Bench::id("alice"), fmt::format("sentence {}", i));
  }
  const auto told = bench.next_reply("alice");
  REQUIRE(told.size() == 33);
  CHECK(told.at(31) == "sentence 999");
  CHECK(told.at(32) == "968 more notices are left out");
  CHECK(bench.next_reply("alice").empty());
}

TEST_CASE("notices: sentences that do not fit are sent with the next replies") {
  Bench bench;
  for (int i = 0; i < 33; ++i) {
    bench.notices->add(Bench::id("alice"), fmt::format("sentence {:02}", i));
  }
  const std::size_t line = std::string("\nNote: sentence 00").size();
  const auto reply = [&](std::size_t room) {
    const auto delivery = bench.take("alice", "r1", room);
    Sentences told = delivery ? delivery->sentences() : Sentences{};
    if (delivery) {
      delivery->confirm();
    }
    return told;
  };
  CHECK(reply(line - 1).empty());
  CHECK(reply(2 * line) == Sentences{"sentence 01", "sentence 02"});
  CHECK(reply(30 * line).size() == 30);
  CHECK(reply(line) == Sentences{});
  CHECK(reply(k_ample_room) == Sentences{"1 more notice is left out"});
  CHECK(reply(k_ample_room).empty());
}

TEST_CASE("notices: ends beyond the limit are counted, also if a reply is lost") {
  Bench bench;
  for (int i = 0; i < 40; ++i) {
    bench.start("alice", fmt::format("proc_1_{:02}", i));
  }
  for (int i = 0; i < 40; ++i) {
    bench.processes.end(fmt::format("proc_1_{:02}", i));
  }
  (void)round_trip(bench.world.sandbox);
  CHECK(bench.take("alice"));  // and not delivered
  const auto told = bench.next_reply("alice");
  REQUIRE(told.size() == 33);
  CHECK(told.at(32) == "8 more processes ended");
}

TEST_CASE("notices: watches are bounded, and dropped ones are reported") {
  Bench bench;
  constexpr int k_started = 258;
  for (int i = 0; i < k_started; ++i) {
    bench.start("alice", fmt::format("proc_1_{:03}", i));
  }
  CHECK(bench.next_reply("alice") ==
        Sentences{"More than 256 processes run; the end of 2 older ones will not be reported"});
  bench.processes.end("proc_1_001");
  CHECK(bench.next_reply("alice").empty());
  bench.processes.end("proc_1_002");
  CHECK(bench.next_reply("alice") == Sentences{"p3 `make` ended, exit code 1"});
}

TEST_CASE("notices: clients are bounded for each owner") {
  Bench bench;
  bench.notices->add({"another", "client 0"}, "hello");
  for (int i = 0; i < 1000; ++i) {
    bench.notices->add(Bench::id(fmt::format("client {}", i)), "hello");
  }
  CHECK(bench.next_reply("client 0").empty());
  CHECK(bench.next_reply("client 999") == Sentences{"hello"});
  const auto other = bench.notices->take({"another", "client 0"}, "r1", bench.world.sandbox, k_ample_room, bench.now);
  REQUIRE(other);
  CHECK(other->sentences() == Sentences{"hello"});
}
