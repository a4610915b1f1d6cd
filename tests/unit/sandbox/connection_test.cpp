#include "sandbox/connection.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/field.hpp"
#include "unit/sandbox/fake_agent.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Connection;

namespace {

using Answer = Result<wire::Frame>;

/// A connection to an agent with a valid greeting.
struct Connected {
  Streams streams = make_streams();
  std::unique_ptr<Connection> connection;
  FakeAgent& agent = streams.agent;

  Connected() {
    agent.greet();
    auto opened = Connection::open(std::move(streams.host), Deadline::after(k_patience));
    REQUIRE(opened);
    connection = std::move(*opened);
  }

  std::future<Answer> call(json head, std::string body = {}, std::stop_token stop = {}) {
    return std::async(std::launch::async, [this, head = std::move(head), body = std::move(body), stop] {
      return connection->call(head, body, Deadline::after(k_patience), stop);
    });
  }
  wire::Frame next_request() {
    auto request = agent.next_request();
    REQUIRE(request);
    return std::move(*request);
  }
};

Answer outcome(std::future<Answer>& call) {
  REQUIRE(call.wait_for(k_patience) == std::future_status::ready);
  return call.get();
}

Error error_of(std::future<Answer>& call) {
  const Answer answer = outcome(call);
  REQUIRE_FALSE(answer);
  return answer.error();
}

/// A stream whose agent sends a greeting and reads nothing.
class Deaf : public sandbox::ByteStream {
 public:
  explicit Deaf(std::atomic<int>& writes) : m_writes(writes) {}
  [[nodiscard]] int read_fd() const override { return -1; }
  [[nodiscard]] int write_fd() const override { return -1; }
  Result<std::size_t> read(std::span<char> buffer) override {
    return std::exchange(m_greeting, {}).copy(buffer.data(), buffer.size());
  }
  Result<std::size_t> write(std::string_view) override {
    ++m_writes;
    return 0;
  }
  [[nodiscard]] std::string stderr_text() override { return {}; }

 private:
  std::atomic<int>& m_writes;
  std::string m_greeting = greeting(hello_head());
};

/// Behaviour of the agent at the end of a `NarrowStream`, and the bytes of each of its reads.
struct Narrow {
  enum class Mode { one_byte, one_byte_per_turn, all, broken };

  std::atomic<Mode> mode = Mode::one_byte;
  std::atomic<int> writes = 0;

  std::vector<std::string> taken() {
    const std::lock_guard lock(m_mutex);
    return m_taken;
  }
  Result<std::size_t> take(std::string_view bytes) {
    const std::lock_guard lock(m_mutex);
    const int before = writes++;
    const Mode now = mode;
    if (now == Mode::broken) {
      return fail(ErrorCode::stream_ended, "the stream ended");
    }
    if (now == Mode::all) {
      m_taken.emplace_back(bytes);
      return bytes.size();
    }
    return now == Mode::one_byte ? (before == 0 ? 1 : 0) : (before % 2 == 0 ? 1 : 0);
  }

 private:
  std::mutex m_mutex;
  std::vector<std::string> m_taken;
};

/// A stream whose agent sends a greeting and reads as much as the test says.
class NarrowStream : public sandbox::ByteStream {
 public:
  explicit NarrowStream(Narrow& narrow) : m_narrow(narrow) {}
  [[nodiscard]] int read_fd() const override { return -1; }
  [[nodiscard]] int write_fd() const override { return -1; }
  Result<std::size_t> read(std::span<char> buffer) override {
    return std::exchange(m_greeting, {}).copy(buffer.data(), buffer.size());
  }
  Result<std::size_t> write(std::string_view bytes) override { return m_narrow.take(bytes); }
  [[nodiscard]] std::string stderr_text() override { return {}; }

 private:
  Narrow& m_narrow;
  std::string m_greeting = greeting(hello_head());
};

std::unique_ptr<Connection> connect(Narrow& narrow) {
  auto opened = Connection::open(std::make_unique<NarrowStream>(narrow), Deadline::after(k_patience));
  REQUIRE(opened);
  return std::move(*opened);
}

}  // namespace

TEST_CASE("connection: the greeting describes the agent") {
  Connected c;
  CHECK(c.connection->alive());
  CHECK(c.connection->hello().version == "1.2.3");
  CHECK(c.connection->hello().machine == "x86_64");
  CHECK(c.connection->hello().shell == "/bin/bash");
  CHECK(c.connection->hello().state_directory == "/var/lib/dockbridge/state/1000");
  CHECK(c.connection->hello().uid == 1000);
}

TEST_CASE("connection: a call sends a request and returns the answer") {
  Connected c;
  auto call = c.call({{"op", "read"}, {"offset", 5}}, "body");
  const auto request = c.next_request();
  CHECK(field(request.head, "op") == "read");
  CHECK(field(request.head, "offset") == 5);
  CHECK(field(request.head, "id").is_number_unsigned());
  CHECK(request.body == "body");
  c.agent.answer(request, {{"n", 1}}, "answer");
  const Answer answer = outcome(call);
  REQUIRE(answer);
  CHECK(field(answer->head, "n") == 1);
  CHECK(answer->body == "answer");
}

TEST_CASE("connection: bodies of the largest size pass in both directions") {
  Connected c;
  const std::string up(wire::k_max_body_to_agent, 'u');
  const std::string down(wire::k_max_body_to_host, 'd');
  auto call = c.call({{"op", "start"}}, up);
  const auto request = c.next_request();
  CHECK(request.body == up);
  c.agent.answer(request, {}, down);
  const Answer answer = outcome(call);
  REQUIRE(answer);
  CHECK(answer->body == down);
}

TEST_CASE("connection: frames may arrive in pieces or together") {
  Connected c;
  auto first = c.call({{"op", "a"}});
  const auto first_request = c.next_request();
  for (const char byte : wire::encode(json{{"id", field(first_request.head, "id")}}, "in pieces")) {
    c.agent.say({&byte, 1});
  }
  const Answer in_pieces = outcome(first);
  REQUIRE(in_pieces);
  CHECK(in_pieces->body == "in pieces");

  auto second = c.call({{"op", "b"}});
  auto third = c.call({{"op", "c"}});
  std::string both;
  for (int i = 0; i < 2; ++i) {
    both += wire::encode(json{{"id", field(c.next_request().head, "id")}});
  }
  c.agent.say(both);
  CHECK(outcome(second));
  CHECK(outcome(third));
}

TEST_CASE("connection: answers out of order reach their callers") {
  Connected c;
  constexpr int k_callers = 20;
  std::vector<std::future<Answer>> calls;
  for (int i = 0; i < k_callers; ++i) {
    calls.push_back(c.call({{"op", "x"}, {"caller", i}}));
  }
  std::vector<wire::Frame> requests;
  for (int i = 0; i < k_callers; ++i) {
    requests.push_back(c.next_request());
  }
  for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
    c.agent.answer(*request, {{"caller", field(request->head, "caller")}});
  }
  for (int i = 0; i < k_callers; ++i) {
    const Answer answer = outcome(calls[static_cast<std::size_t>(i)]);
    REQUIRE(answer);
    CHECK(field(answer->head, "caller") == i);
  }
}

TEST_CASE("connection: an error of the agent is returned to the caller") {
  Connected c;
  auto call = c.call({{"op", "wait"}});
  const auto request = c.next_request();
  c.agent.answer(request, {{"error", {{"code", "no_such_process"}, {"message", "no\x1b"}, {"nextStep", "List them"}}}});
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::no_such_process);
  CHECK(error.message == "no\\x1b");
  CHECK(error.next_step == "List them");
  CHECK(c.connection->alive());
}

TEST_CASE("connection: a malformed error is a violation") {
  for (const json& error : {json(), json("text"), json::object(), json{{"code", "c"}},
                            json{{"code", 1}, {"message", "m"}, {"nextStep", ""}}, json::array({1, 2, 3}),
                            json{{"code", "a\"} 1"}, {"message", "m"}, {"nextStep", ""}},
                            json{{"code", std::string(100, 'x')}, {"message", "m"}, {"nextStep", ""}}}) {
    CAPTURE(error);
    Connected c;
    auto call = c.call({{"op", "wait"}});
    c.agent.answer(c.next_request(), {{"error", error}});
    CHECK(error_of(call).code == ErrorCode::protocol_violation);
  }
}

TEST_CASE("connection: a malformed frame fails all waiting calls with the reason") {
  Connected c;
  auto first = c.call({{"op", "a"}});
  auto second = c.call({{"op", "b"}});
  c.next_request();
  c.next_request();
  SUBCASE("a head that is announced too large") {
    c.agent.say(frame_prefix(wire::k_max_head_bytes + 1, 0));
  }
  SUBCASE("a body that is announced too large") {
    c.agent.say(frame_prefix(2, wire::k_max_body_to_host + 1));
  }
  SUBCASE("lengths whose sum overflows") {
    c.agent.say(frame_prefix(0xFFFFFFFF, 0xFFFFFFFF));
  }
  SUBCASE("a head that is nested too deep") {
    c.agent.say(raw_frame(nested(wire::k_max_head_depth + 1)));
  }
  SUBCASE("a head of brackets") {
    c.agent.say(raw_frame(std::string(wire::k_max_head_bytes, '[')));
  }
  SUBCASE("a head that is no object") {
    c.agent.say(raw_frame("[1]"));
  }
  SUBCASE("a head that is no JSON") {
    c.agent.say(raw_frame("{\"id\":"));
  }
  SUBCASE("a head that is no UTF-8") {
    c.agent.say(raw_frame("{\"id\":1,\"a\":\"\xff\"}"));
  }
  SUBCASE("an answer without an id") {
    c.agent.say(wire::encode(json{{"n", 1}}));
  }
  SUBCASE("an answer with a text for an id") {
    c.agent.say(wire::encode(json{{"id", "1"}}));
  }
  SUBCASE("an answer with a fraction for an id") {
    c.agent.say(wire::encode(json{{"id", 1.0}}));
  }
  SUBCASE("an answer with a negative id") {
    c.agent.say(wire::encode(json{{"id", -1}}));
  }
  SUBCASE("an answer to a request that was never made") {
    c.agent.say(wire::encode(json{{"id", 1000}}));
  }
  SUBCASE("an answer to request 0") {
    c.agent.say(wire::encode(json{{"id", 0}}));
  }
  SUBCASE("a second greeting") {
    c.agent.say(greeting(hello_head()));
  }
  CHECK(error_of(first).code == ErrorCode::protocol_violation);
  CHECK(error_of(second).code == ErrorCode::protocol_violation);
  CHECK_FALSE(c.connection->alive());
  auto later = c.call({{"op", "c"}});
  CHECK(error_of(later).code == ErrorCode::protocol_violation);
}

TEST_CASE("connection: an answer before a malformed frame is delivered") {
  Connected c;
  auto good = c.call({{"op", "a"}});
  const auto first_request = c.next_request();
  auto bad = c.call({{"op", "b"}});
  c.next_request();
  c.agent.say(wire::encode(json{{"id", field(first_request.head, "id")}}) + raw_frame("null"));
  CHECK(outcome(good));
  CHECK(error_of(bad).code == ErrorCode::protocol_violation);
}

TEST_CASE("connection: the end of the stream fails waiting and later calls") {
  Connected c;
  std::vector<std::future<Answer>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(c.call({{"op", "wait"}}));
    c.next_request();
  }
  SUBCASE("between frames") {}
  SUBCASE("within the lengths") {
    c.agent.say("\x01");
  }
  SUBCASE("within a head") {
    c.agent.say(frame_prefix(10, 0) + "{\"id\"");
  }
  SUBCASE("within a body") {
    c.agent.say(frame_prefix(8, 100) + "{\"id\":1}half");
  }
  c.agent.hang_up();
  for (auto& call : calls) {
    const Error error = error_of(call);
    CHECK(error.code == ErrorCode::connection_lost);
  }
  CHECK_FALSE(c.connection->alive());
  auto later = c.call({{"op", "wait"}});
  CHECK(error_of(later).code == ErrorCode::connection_lost);
}

TEST_CASE("connection: a late answer to a call that gave up is dropped") {
  Connected c;
  const auto given_up = c.connection->call({{"op", "slow"}}, {}, Deadline::after(milliseconds(0)), {});
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().code == ErrorCode::timed_out);
  CHECK(given_up.error().outcome_unknown);
  const auto late = c.next_request();
  const auto cancellation = c.next_request();
  CHECK(field(cancellation.head, "op") == "cancel");
  CHECK(field(cancellation.head, "request") == field(late.head, "id"));

  auto call = c.call({{"op", "next"}});
  const auto request = c.next_request();
  c.agent.answer(late, {{"late", true}});
  c.agent.answer(request, {{"late", false}});
  const Answer answer = outcome(call);
  REQUIRE(answer);
  CHECK(field(answer->head, "late") == false);
  CHECK(c.connection->alive());
}

TEST_CASE("connection: a second answer to a request is dropped") {
  Connected c;
  auto first = c.call({{"op", "a"}});
  const auto request = c.next_request();
  c.agent.answer(request);
  REQUIRE(outcome(first));
  c.agent.answer(request);
  auto second = c.call({{"op", "b"}});
  c.agent.answer(c.next_request(), {{"second", true}});
  const Answer answer = outcome(second);
  REQUIRE(answer);
  CHECK(field(answer->head, "second") == true);
}

TEST_CASE("connection: a stop token ends only its own waiting call") {
  Connected c;
  std::stop_source source;
  auto stopped = c.call({{"op", "wait"}}, {}, source.get_token());
  auto other = c.call({{"op", "wait"}});
  const auto first_request = c.next_request();
  const auto second_request = c.next_request();
  source.request_stop();
  const Error error = error_of(stopped);
  CHECK(error.code == ErrorCode::cancelled);
  CHECK(error.outcome_unknown);
  CHECK(c.connection->alive());
  c.agent.answer(first_request);
  c.agent.answer(second_request);
  CHECK(outcome(other));
}

TEST_CASE("connection: a call that was stopped before its start does not wait") {
  Connected c;
  std::stop_source source;
  source.request_stop();
  auto call = c.call({{"op", "wait"}}, {}, source.get_token());
  CHECK(error_of(call).code == ErrorCode::cancelled);
}

TEST_CASE("connection: an unanswered ping is detected before the deadline") {
  Connected c;
  auto call = c.call({{"op", "wait"}});
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::agent_silent);
  CHECK(error.outcome_unknown);
  auto request = c.next_request();
  CHECK(field(request.head, "op") == "wait");
  const auto cancellation = c.next_request();
  CHECK(field(cancellation.head, "op") == "cancel");
  CHECK(field(cancellation.head, "request") == field(request.head, "id"));

  // Once the agent answers the ping, the next request succeeds.
  auto later = c.call({{"op", "again"}});
  request = c.next_request();
  CHECK(field(request.head, "op") == "again");
  c.agent.answer(request);
  CHECK(outcome(later));
}

TEST_CASE("connection: an agent that never stops sending delays no deadline") {
  Connected c;
  std::jthread talker([&](const std::stop_token& stop) {
    std::string flood;
    for (int i = 0; i < 1000; ++i) {
      flood += raw_frame(R"({"id":1})");
    }
    while (!stop.stop_requested() && c.agent.say(flood)) {
    }
  });
  REQUIRE(c.connection->call({{"op", "first"}}, {}, Deadline::after(k_patience), {}));
  const auto late = c.connection->call({{"op", "wait"}}, {}, Deadline::after(milliseconds(100)), {});
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::timed_out);
  CHECK(c.connection->alive());
  c.connection.reset();
}

TEST_CASE("connection: its destruction ends the stream for the agent") {
  Connected c;
  c.connection.reset();
  CHECK_FALSE(c.agent.next_request());
}

TEST_CASE("connection: a backlog over 64 MiB is rejected until calls give up") {
  Connected c;  // whose agent never reads
  const std::string body(8 * 1024 * 1024, 'x');
  const auto call = [&] {
    return c.connection->call({{"op", "start"}}, body, Deadline::after(seconds(1)), {}).error();
  };
  std::vector<std::future<Error>> calls;
  for (int i = 0; i < 12; ++i) {
    calls.push_back(std::async(std::launch::async, call));
  }
  int busy = 0;
  int unsent = 0;
  for (auto& pending : calls) {
    const Error error = pending.get();
    busy += error.code == ErrorCode::agent_busy ? 1 : 0;
    unsent += error.code == ErrorCode::timed_out && !error.outcome_unknown ? 1 : 0;
  }
  CHECK(busy >= 3);
  CHECK(unsent >= 7);
  CHECK(call().code == ErrorCode::timed_out);
}

TEST_CASE("connection: it can be destroyed while an agent reads nothing") {
  std::atomic<int> writes = 0;
  auto connection = Connection::open(std::make_unique<Deaf>(writes), Deadline::after(k_patience));
  REQUIRE(connection);
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE((*connection)->call({{"op", "ping"}}, {}, Deadline::after(milliseconds(10)), {}));
  }
  const int before = writes;
  const auto deadline = Deadline::after(k_patience);
  while (writes == before && !deadline.passed()) {
    std::this_thread::yield();
  }
  CHECK(writes > before);  // by the connection's own thread
  connection->reset();
}

TEST_CASE("connection: a cancellation precedes requests that are still queued") {
  Narrow narrow;
  const auto connection = connect(narrow);
  std::stop_source source;
  auto stopped = std::async(std::launch::async, [&] {
    return connection->call({{"op", "first"}}, {}, Deadline::after(k_patience), source.get_token());
  });
  const auto deadline = Deadline::after(k_patience);
  while (narrow.writes == 0 && !deadline.passed()) {
    std::this_thread::yield();
  }
  connection->post({{"op", "second"}});
  source.request_stop();
  CHECK(error_of(stopped).code == ErrorCode::cancelled);
  narrow.mode = Narrow::Mode::all;
  while (narrow.taken().size() < 2 && !deadline.passed()) {
    connection->poll_stream();
  }
  const auto taken = narrow.taken();
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].find("first") != std::string::npos);
  CHECK(taken[0].find("cancel") != std::string::npos);
  CHECK(taken[1].find("second") != std::string::npos);
}

TEST_CASE("connection: a request unsent when the stream broke has a known outcome") {
  Narrow narrow;
  const auto connection = connect(narrow);
  const auto begun = connection->call({{"op", "first"}}, {}, Deadline::after(milliseconds(10)), {});
  REQUIRE_FALSE(begun);
  CHECK(begun.error().outcome_unknown);
  narrow.mode = Narrow::Mode::broken;
  const auto unsent = connection->call({{"op", "second"}}, {}, Deadline::after(k_patience), {});
  REQUIRE_FALSE(unsent);
  CHECK(unsent.error().code == ErrorCode::connection_lost);
  CHECK_FALSE(unsent.error().outcome_unknown);
}

TEST_CASE("connection: an agent that reads a request slowly is not silent") {
  Narrow narrow;
  narrow.mode = Narrow::Mode::one_byte_per_turn;
  const auto connection = connect(narrow);
  const auto late = connection->call({{"op", "start"}}, "a body", Deadline::after(milliseconds(4500)), {});
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::timed_out);
}

TEST_CASE("connection: any reading thread passes a posted reply to its handler") {
  Connected connected;
  std::vector<std::string> replies;  // written and read by the thread of the test's own call
  connected.connection->post({{"op", "wait"}}, [&](const Answer& reply) {
    replies.push_back(reply ? reply->body : std::string(name_of(reply.error().code)));
  });
  connected.connection->post({{"op", "wait"}}, [&](const Answer& reply) {
    replies.push_back(reply ? reply->body : std::string(name_of(reply.error().code)));
  });
  const wire::Frame first = connected.next_request();
  const wire::Frame second = connected.next_request();
  auto call = connected.call({{"op", "ask"}});
  const wire::Frame third = connected.next_request();
  connected.agent.answer(second, {}, "late");
  connected.agent.refuse(first, "no_such_process");
  connected.agent.answer(first, {}, "twice");
  connected.agent.answer(third, {}, "mine");
  CHECK(outcome(call)->body == "mine");
  CHECK(replies == std::vector<std::string>{"late", "no_such_process"});
}

TEST_CASE("connection: a handler is destroyed uncalled if the connection is lost") {
  const auto witness = std::make_shared<int>(0);
  {
    Connected connected;
    connected.connection->post({{"op", "wait"}}, [witness](const Answer&) { ++*witness; });
    (void)connected.next_request();
    auto call = connected.call({{"op", "ask"}});
    connected.agent.hang_up();
    CHECK(error_of(call).code == ErrorCode::connection_lost);
  }
  CHECK(*witness == 0);
  CHECK(witness.use_count() == 1);
}
