#include <doctest/doctest.h>

#include <future>
#include <span>
#include <string>
#include <vector>

#include "sandbox/connection.hpp"
#include "unit/sandbox/fake_agent.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using sandbox::Connection;

namespace {

/// A stream with these pieces, one for each read.
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
  [[nodiscard]] std::string stderr_text() override { return {}; }

 private:
  std::vector<std::string> m_pieces;
  std::size_t m_next = 0;
};

/// The error of opening a connection to an agent that sends this and then ends.
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

}  // namespace

TEST_CASE("greeting: may arrive byte by byte") {
  Streams streams = make_streams();
  auto opening = std::async(std::launch::async, [&] {
    return Connection::open(std::move(streams.host), Deadline::after(k_patience)).has_value();
  });
  for (const char byte : greeting(hello_head())) {
    streams.agent.say({&byte, 1});
  }
  CHECK(opening.get());
}

TEST_CASE("greeting: text in place of the magic is the reason of the failure") {
  const Error error = error_of_opening("exec /agent: no such file or directory\n\x1b[31m");
  CHECK(error.code == ErrorCode::agent_failed);
  CHECK(error.message == "The agent did not start: exec /agent: no such file or directory\\n\\x1b[31m");
}

TEST_CASE("greeting: the reason may be shorter than the magic") {
  CHECK(error_of_opening("oops").message == "The agent did not start: oops");
}

TEST_CASE("greeting: error output of the program is reported") {
  const Error error = error_of_opening("", "OCI runtime exec failed\n");
  CHECK(error.code == ErrorCode::agent_failed);
  CHECK(error.message == "The agent did not start: OCI runtime exec failed\\n");
}

TEST_CASE("greeting: an empty stream means that the agent did not start") {
  const Error error = error_of_opening("");
  CHECK(error.code == ErrorCode::agent_failed);
  CHECK(error.message == "The agent did not start: the stream ended");
}

TEST_CASE("greeting: an endless reason is cut") {
  const Error error = error_of_opening(std::string(100'000, 'x'));
  CHECK(error.code == ErrorCode::agent_failed);
  CHECK(error.message.size() < 600);
}

TEST_CASE("greeting: its absence is an error after the deadline") {
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
  CHECK(opened.error().code == ErrorCode::timed_out);
}

TEST_CASE("greeting: an incomplete one means that the agent did not start") {
  const std::string whole = greeting(hello_head());
  for (const std::size_t length : {wire::k_magic.size(), wire::k_magic.size() + 3, whole.size() - 1}) {
    CHECK(error_of_opening(whole.substr(0, length)).code == ErrorCode::agent_failed);
  }
}

TEST_CASE("greeting: another protocol version is reported") {
  for (const int version : {0, 2, -1}) {
    CHECK(error_of_opening(greeting(hello_with("protocol", version))).code == ErrorCode::agent_version);
  }
}

TEST_CASE("greeting: a fatal error of the agent is reported") {
  const json fatal = {{"code", "no_state_directory"}, {"message", "nowhere to\nwrite"}, {"nextStep", "Mount a volume"}};
  const Error error = error_of_opening(greeting({{"fatal", fatal}}));
  CHECK(error.code == ErrorCode::no_state_directory);
  CHECK(error.message == "nowhere to\nwrite");
  CHECK(error.next_step == "Mount a volume");
}

TEST_CASE("greeting: malformed fields are a violation") {
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
      {{"fatal", {{"code", "made_up"}, {"message", "m"}, {"nextStep", ""}}}},
      {{"fatal", {{"code", 1}, {"message", "m"}, {"nextStep", ""}}}},
      {{"fatal", {{"code", "io_error"}, {"message", {1}}, {"nextStep", ""}}}},
      {{"fatal", {{"code", "io_error"}, {"message", "m"}}}},
  };
  for (const char* key : {"protocol", "version", "machine", "shell", "home", "state", "uid"}) {
    heads.push_back(hello_with(key, nullptr));
    heads.push_back(hello_with(key, json::array({1})));
    heads.push_back(hello_with(key, json::object()));
    json lacking = hello_head();
    lacking["hello"].erase(key);
    heads.push_back(lacking);
  }
  for (const char* key : {"version", "machine", "shell", "home", "state"}) {
    heads.push_back(hello_with(key, 1));
  }
  heads.push_back(hello_with("protocol", "1"));
  heads.push_back(hello_with("uid", "0"));
  for (const json& head : heads) {
    CAPTURE(head);
    CHECK(error_of_opening(greeting(head)).code == ErrorCode::protocol_violation);
  }
}

TEST_CASE("greeting: a malformed frame is a violation") {
  const std::string magic(wire::k_magic);
  CHECK(error_of_opening(magic + frame_prefix(wire::k_max_head_bytes + 1, 0)).code == ErrorCode::protocol_violation);
  CHECK(error_of_opening(magic + frame_prefix(2, wire::k_max_body_to_host + 1)).code == ErrorCode::protocol_violation);
  CHECK(error_of_opening(magic + raw_frame("[1,2]")).code == ErrorCode::protocol_violation);
  CHECK(error_of_opening(magic + raw_frame(nested(wire::k_max_head_depth + 1))).code == ErrorCode::protocol_violation);
  CHECK(error_of_opening(magic + "no frame but text").code == ErrorCode::protocol_violation);
}

TEST_CASE("greeting: fields that are not numbers are a violation") {
  for (const json& head : {hello_with("protocol", true), hello_with("protocol", 1.9), hello_with("uid", -1),
                           hello_with("uid", std::uint64_t{1} << 32U)}) {
    CAPTURE(head);
    CHECK(error_of_opening(greeting(head)).code == ErrorCode::protocol_violation);
  }
}

TEST_CASE("greeting: a short reason is reported even if the stream stays open") {
  Streams streams = make_streams();
  streams.agent.say("exec failed");
  const auto opened = Connection::open(std::move(streams.host), Deadline::after(milliseconds(50)));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message.find("exec failed") != std::string::npos);
}

TEST_CASE("greeting: a large one may arrive in pieces") {
  const std::string whole = greeting(hello_with("version", std::string(5000, 'v')));
  auto stream = std::make_unique<Pieces>(std::vector{whole.substr(0, 18), whole.substr(18, 4096), whole.substr(4114)});
  CHECK(Connection::open(std::move(stream), Deadline::after(k_patience)).has_value());
}
