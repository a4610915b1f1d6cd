#include "sandbox/connection.hpp"

#include <doctest/doctest.h>

#include <future>
#include <span>
#include <string>
#include <vector>

#include "unit/sandbox/fake_agent.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Connection;

namespace {

using Answer = Result<wire::Frame>;

/// A connection to an agent that has greeted well.
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

/// A stream that hands out exactly these pieces, one for each read, and then has nothing more.
class Pieces : public sandbox::ByteStream {
 public:
  explicit Pieces(std::vector<std::string> pieces) : m_pieces(std::move(pieces)) {}
  [[nodiscard]] int read_fd() const override { return -1; }
  [[nodiscard]] int write_fd() const override { return -1; }
  Result<std::size_t> read(std::span<char> buffer) override {
    if (m_next == m_pieces.size()) {
      return 0;
    }
    const std::string& piece = m_pieces[m_next++];
    REQUIRE(piece.size() <= buffer.size());
    return piece.copy(buffer.data(), piece.size());
  }
  Result<std::size_t> write(std::string_view) override { return 0; }
  [[nodiscard]] std::string complaint() override { return {}; }

 private:
  std::vector<std::string> m_pieces;
  std::size_t m_next = 0;
};

/// What opening a connection says to an agent that begins like this and then goes.
Error error_of_opening(const std::string& first_bytes, const std::string& complaint = {}) {
  Streams streams = make_streams(complaint);
  streams.agent.say(first_bytes);
  streams.agent.hang_up();
  const auto opened = Connection::open(std::move(streams.host), Deadline::after(k_patience));
  REQUIRE_FALSE(opened);
  return opened.error();
}

json hello_with(const char* key, json value) {
  json head = hello_head();
  head["hello"][key] = std::move(value);
  return head;
}

/// `levels` objects inside each other.
std::string nested(int levels) {
  std::string text = "1";
  for (int i = 0; i < levels; ++i) {
    text = "{\"a\":" + text + "}";
  }
  return text;
}

}  // namespace

TEST_CASE("the agent's greeting tells what there is") {
  Connected c;
  CHECK(c.connection->alive());
  CHECK(c.connection->hello().version == "1.2.3");
  CHECK(c.connection->hello().machine == "x86_64");
  CHECK(c.connection->hello().shell == "/bin/bash");
  CHECK(c.connection->hello().state_directory == "/var/lib/dockbridge/state/1000");
  CHECK(c.connection->hello().uid == 1000);
}

TEST_CASE("a greeting may come byte by byte") {
  Streams streams = make_streams();
  auto opening = std::async(std::launch::async, [&] {
    return Connection::open(std::move(streams.host), Deadline::after(k_patience)).has_value();
  });
  for (const char byte : greeting(hello_head())) {
    streams.agent.say({&byte, 1});
  }
  CHECK(opening.get());
}

TEST_CASE("what comes in place of the magic is the reason why the agent did not start") {
  const Error error = error_of_opening("exec /agent: no such file or directory\n\x1b[31m");
  CHECK(error.code == "agent_failed");
  CHECK(error.message == "agent failed to start: exec /agent: no such file or directory\\n\\x1b[31m");
}

TEST_CASE("a reason shorter than the magic counts too") {
  CHECK(error_of_opening("oops").message == "agent failed to start: oops");
}

TEST_CASE("what the program complained of is told") {
  const Error error = error_of_opening("", "OCI runtime exec failed\n");
  CHECK(error.code == "agent_failed");
  CHECK(error.message == "agent failed to start: OCI runtime exec failed\\n");
}

TEST_CASE("a stream that ends without a word is an agent that did not start") {
  const Error error = error_of_opening("");
  CHECK(error.code == "agent_failed");
  CHECK(error.message == "agent failed to start: the stream ended");
}

TEST_CASE("an endless reason is cut") {
  const Error error = error_of_opening(std::string(100'000, 'x'));
  CHECK(error.code == "agent_failed");
  CHECK(error.message.size() < 600);
}

TEST_CASE("an agent that does not greet in time is given up") {
  const std::string whole = greeting(hello_head());
  std::string begun;
  SUBCASE("silent from the start") {}
  SUBCASE("silent within the magic") {
    begun = whole.substr(0, 10);
  }
  SUBCASE("silent after the magic") {
    begun = whole.substr(0, wire::k_magic.size());
  }
  SUBCASE("silent within the frame") {
    begun = whole.substr(0, whole.size() - 1);
  }
  Streams streams = make_streams();
  streams.agent.say(begun);
  const auto opened = Connection::open(std::move(streams.host), Deadline::after(milliseconds(1)));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == "timed_out");
  CHECK_FALSE(opened.error().next_step.empty());
}

TEST_CASE("a greeting that breaks off is a failure to start") {
  const std::string whole = greeting(hello_head());
  for (const std::size_t length : {wire::k_magic.size(), wire::k_magic.size() + 3, whole.size() - 1}) {
    CHECK(error_of_opening(whole.substr(0, length)).code == "agent_failed");
  }
}

TEST_CASE("an agent of another protocol version is named as that") {
  for (const int version : {0, 2, -1}) {
    CHECK(error_of_opening(greeting(hello_with("protocol", version))).code == "agent_version");
  }
}

TEST_CASE("a fatal greeting is the agent's own error") {
  const json fatal = {{"code", "no_state_directory"}, {"message", "nowhere to\nwrite"}, {"nextStep", "Mount a volume"}};
  const Error error = error_of_opening(greeting({{"fatal", fatal}}));
  CHECK(error.code == "no_state_directory");
  CHECK(error.message == "nowhere to\\nwrite");
  CHECK(error.next_step == "Mount a volume");
}

TEST_CASE("a greeting that is not well formed is a violation") {
  std::vector<json> heads = {
      json::object(),
      {{"id", 1}},
      {{"hello", nullptr}},
      {{"hello", "hi"}},
      {{"hello", json::array()}},
      {{"hello", json::object()}},
      {{"fatal", nullptr}},
      {{"fatal", "no"}},
      {{"fatal", json::object()}},
      {{"fatal", {{"code", 1}, {"message", "m"}, {"nextStep", ""}}}},
      {{"fatal", {{"code", "c"}, {"message", {1}}, {"nextStep", ""}}}},
      {{"fatal", {{"code", "c"}, {"message", "m"}}}},
  };
  for (const char* key : {"protocol", "version", "machine", "shell", "state", "uid"}) {
    heads.push_back(hello_with(key, nullptr));
    heads.push_back(hello_with(key, json::array({1})));
    heads.push_back(hello_with(key, json::object()));
    json lacking = hello_head();
    lacking["hello"].erase(key);
    heads.push_back(lacking);
  }
  for (const char* key : {"version", "machine", "shell", "state"}) {
    heads.push_back(hello_with(key, 1));
  }
  heads.push_back(hello_with("protocol", "1"));
  heads.push_back(hello_with("uid", "0"));
  for (const json& head : heads) {
    CAPTURE(head);
    CHECK(error_of_opening(greeting(head)).code == "protocol_violation");
  }
}

TEST_CASE("a greeting that is no frame is a violation") {
  const std::string magic(wire::k_magic);
  CHECK(error_of_opening(magic + frame_prefix(wire::k_max_head_bytes + 1, 0)).code == "protocol_violation");
  CHECK(error_of_opening(magic + frame_prefix(2, wire::k_max_body_to_host + 1)).code == "protocol_violation");
  CHECK(error_of_opening(magic + raw_frame("[1,2]")).code == "protocol_violation");
  CHECK(error_of_opening(magic + raw_frame(nested(wire::k_max_head_depth + 1))).code == "protocol_violation");
  CHECK(error_of_opening(magic + "no frame but text").code == "protocol_violation");
}

TEST_CASE("a call brings the request to the agent and the answer back") {
  Connected c;
  auto call = c.call({{"op", "read"}, {"offset", 5}}, "body");
  const auto request = c.next_request();
  CHECK(request.head["op"] == "read");
  CHECK(request.head["offset"] == 5);
  CHECK(request.head["id"].is_number_unsigned());
  CHECK(request.body == "body");
  c.agent.answer(request, {{"n", 1}}, "answer");
  const Answer answer = outcome(call);
  REQUIRE(answer);
  CHECK(answer->head["n"] == 1);
  CHECK(answer->body == "answer");
}

TEST_CASE("bodies of the largest size pass in both directions") {
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

TEST_CASE("an answer in many pieces and several answers in one piece are the same") {
  Connected c;
  auto first = c.call({{"op", "a"}});
  const auto first_request = c.next_request();
  for (const char byte : wire::encode({{"id", first_request.head["id"]}}, "in pieces")) {
    c.agent.say({&byte, 1});
  }
  const Answer in_pieces = outcome(first);
  REQUIRE(in_pieces);
  CHECK(in_pieces->body == "in pieces");

  auto second = c.call({{"op", "b"}});
  auto third = c.call({{"op", "c"}});
  std::string both;
  for (int i = 0; i < 2; ++i) {
    both += wire::encode({{"id", c.next_request().head["id"]}});
  }
  c.agent.say(both);
  CHECK(outcome(second));
  CHECK(outcome(third));
}

TEST_CASE("answers out of order reach each the caller that asked") {
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
    c.agent.answer(*request, {{"caller", request->head["caller"]}});
  }
  for (int i = 0; i < k_callers; ++i) {
    const Answer answer = outcome(calls[static_cast<std::size_t>(i)]);
    REQUIRE(answer);
    CHECK(answer->head["caller"] == i);
  }
}

TEST_CASE("an error that the agent tells is the caller's, and the connection goes on") {
  Connected c;
  auto call = c.call({{"op", "wait"}});
  const auto request = c.next_request();
  c.agent.answer(request, {{"error", {{"code", "no_such_process"}, {"message", "no\x1b"}, {"nextStep", "List them"}}}});
  const Error error = error_of(call);
  CHECK(error.code == "no_such_process");
  CHECK(error.message == "no\\x1b");
  CHECK(error.next_step == "List them");
  CHECK(c.connection->alive());
}

TEST_CASE("an error that is not well formed is a violation") {
  for (const json& error : {json(), json("text"), json::object(), json{{"code", "c"}},
                            json{{"code", 1}, {"message", "m"}, {"nextStep", ""}}, json::array({1, 2, 3})}) {
    CAPTURE(error);
    Connected c;
    auto call = c.call({{"op", "wait"}});
    c.agent.answer(c.next_request(), {{"error", error}});
    CHECK(error_of(call).code == "protocol_violation");
  }
}

TEST_CASE("a frame that breaks the protocol ends the connection for all who wait, with the reason") {
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
    c.agent.say(wire::encode({{"n", 1}}));
  }
  SUBCASE("an answer with a text for an id") {
    c.agent.say(wire::encode({{"id", "1"}}));
  }
  SUBCASE("an answer with a fraction for an id") {
    c.agent.say(wire::encode({{"id", 1.0}}));
  }
  SUBCASE("an answer with a negative id") {
    c.agent.say(wire::encode({{"id", -1}}));
  }
  SUBCASE("an answer to a request that was never made") {
    c.agent.say(wire::encode({{"id", 1000}}));
  }
  SUBCASE("an answer to request 0") {
    c.agent.say(wire::encode({{"id", 0}}));
  }
  SUBCASE("a second greeting") {
    c.agent.say(greeting(hello_head()));
  }
  CHECK(error_of(first).code == "protocol_violation");
  CHECK(error_of(second).code == "protocol_violation");
  CHECK_FALSE(c.connection->alive());
  auto later = c.call({{"op", "c"}});
  CHECK(error_of(later).code == "protocol_violation");
}

TEST_CASE("a good answer before a bad frame is delivered") {
  Connected c;
  auto good = c.call({{"op", "a"}});
  const auto first_request = c.next_request();
  auto bad = c.call({{"op", "b"}});
  c.next_request();
  c.agent.say(wire::encode({{"id", first_request.head["id"]}}) + raw_frame("null"));
  CHECK(outcome(good));
  CHECK(error_of(bad).code == "protocol_violation");
}

TEST_CASE("the end of the stream fails every call that waits, and every later one") {
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
    CHECK(error.code == "connection_lost");
    CHECK_FALSE(error.next_step.empty());
  }
  CHECK_FALSE(c.connection->alive());
  auto later = c.call({{"op", "wait"}});
  CHECK(error_of(later).code == "connection_lost");
}

TEST_CASE("a call that is not answered in time gives up, and its late answer disturbs nobody") {
  Connected c;
  const auto given_up = c.connection->call({{"op", "slow"}}, {}, Deadline::after(milliseconds(0)), {});
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().code == "timed_out");
  const auto late = c.next_request();

  auto call = c.call({{"op", "next"}});
  const auto request = c.next_request();
  c.agent.answer(late, {{"late", true}});
  c.agent.answer(request, {{"late", false}});
  const Answer answer = outcome(call);
  REQUIRE(answer);
  CHECK(answer->head["late"] == false);
  CHECK(c.connection->alive());
}

TEST_CASE("a second answer to the same request disturbs nobody") {
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
  CHECK(answer->head["second"] == true);
}

TEST_CASE("a call that is told to stop does so while it waits, and no other with it") {
  Connected c;
  std::stop_source source;
  auto stopped = c.call({{"op", "wait"}}, {}, source.get_token());
  auto other = c.call({{"op", "wait"}});
  const auto first_request = c.next_request();
  const auto second_request = c.next_request();
  source.request_stop();
  CHECK(error_of(stopped).code == "cancelled");
  CHECK(c.connection->alive());
  c.agent.answer(first_request);
  c.agent.answer(second_request);
  CHECK(outcome(other));
}

TEST_CASE("a call that is told to stop before it begins does not wait") {
  Connected c;
  std::stop_source source;
  source.request_stop();
  auto call = c.call({{"op", "wait"}}, {}, source.get_token());
  CHECK(error_of(call).code == "cancelled");
}

TEST_CASE("an agent that does not even answer a ping is silent, long before the call's own deadline") {
  Connected c;
  auto call = c.call({{"op", "wait"}});
  CHECK(error_of(call).code == "agent_silent");
  auto request = c.next_request();
  CHECK(request.head["op"] == "wait");

  // It wakes up again: the ping is answered on the way to the next request, and all is well.
  auto later = c.call({{"op", "again"}});
  request = c.next_request();
  CHECK(request.head["op"] == "again");
  c.agent.answer(request);
  CHECK(outcome(later));
}

TEST_CASE("an agent that never stops talking keeps no call from its deadline, and no connection from its end") {
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
  CHECK(late.error().code == "timed_out");
  CHECK(c.connection->alive());
  c.connection.reset();
}

TEST_CASE("a connection that is let go of ends the stream for the agent") {
  Connected c;
  c.connection.reset();
  CHECK_FALSE(c.agent.next_request());
}

TEST_CASE("a greeting whose numbers are none is refused") {
  for (const json& head : {hello_with("protocol", true), hello_with("protocol", 1.9), hello_with("uid", -1)}) {
    CAPTURE(head);
    CHECK(error_of_opening(greeting(head)).code == "protocol_violation");
  }
}

TEST_CASE("a backlog beyond 64 MiB is refused") {
  Connected c;  // whose agent never reads
  const std::string body(8 * 1024 * 1024, 'x');
  std::string code;
  for (int i = 0; i < 12; ++i) {
    code = c.connection->call({{"op", "start"}}, body, Deadline::after(milliseconds(30)), {}).error().code;
  }
  CHECK(code == "agent_busy");
}

TEST_CASE("a short failure text is told even if the stream does not end") {
  Streams streams = make_streams();
  streams.agent.say("exec failed");
  const auto opened = Connection::open(std::move(streams.host), Deadline::after(milliseconds(50)));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message.find("exec failed") != std::string::npos);
}

TEST_CASE("a large greeting may come in pieces") {
  const std::string whole = greeting(hello_with("version", std::string(5000, 'v')));
  auto stream = std::make_unique<Pieces>(std::vector{whole.substr(0, 18), whole.substr(18, 4096), whole.substr(4114)});
  CHECK(Connection::open(std::move(stream), Deadline::after(k_patience)).has_value());
}
