#include "mcp/once.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"
#include "mcp/hub.hpp"
#include "support/field.hpp"
#include "unit/mcp/doubles.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using State = Once::Entered::State;
using dockbridge::test::field;

namespace {

constexpr Clock::time_point k_start{std::chrono::hours(1)};

ToolResult result_of(std::size_t bytes) {
  ToolResult result{std::string(bytes, 'x'), json::object()};
  result.outcome = "revision 3f2a";
  return result;
}

/// Makes the call if it is the first with this key.
Once::Entered make(Once& once, const std::string& owner, const std::string& key, Clock::time_point now,
                   std::size_t bytes = 10) {
  auto entered = once.enter(owner, once_mark(owner, key, "edit"), now);
  if (entered.state == State::first) {
    once.finish(*entered.attempt, result_of(bytes), now);
  }
  return entered;
}

/// A client with a tool that counts its calls.
class Desk {
 public:
  void send(const std::string& tool, const std::string& key, const json& arguments) {
    const json params = {{"name", tool}, {"arguments", arguments}, {"_meta", {{k_meta_idempotency_key, key}}}};
    for (const auto& call : conversation->receive(request_message(++m_id, "tools/call", params).dump())) {
      call->make();
    }
  }
  json call(const std::string& tool, const std::string& key, const json& arguments) {
    send(tool, key, arguments);
    return field(m_inbox.next(), "result");
  }

  int edits = 0;
  bool cancels_itself = false;
  std::optional<Error> error;
  bool asks_first = false;

 private:
  Inbox m_inbox;
  int m_id = 0;
  Log m_log{-1, LogLevel::off, LogFormat::text};
  const Server m_server{{"test", "Test", "1", ""},
                        {{tool("edit",
                               [this](const json& arguments, const CallContext&) {
                                 ++edits;
                                 if (std::exchange(cancels_itself, false)) {
                                   conversation->cancel_calls();
                                 }
                                 if (error) {
                                   return error_result(*error);
                                 }
                                 if (std::exchange(asks_first, false)) {
                                   ToolResult question;
                                   question.input_required = InputRequired{};
                                   return question;
                                 }
                                 ToolResult result = result_of(field(arguments, "bytes"));
                                 result.effect_complete = true;
                                 return result;
                               }),
                          tool("other", [](const json&, const CallContext&) { return result_of(1); })}}};

 public:
  Hub hub{m_server, m_log};
  std::shared_ptr<Conversation> conversation = Conversation::begin(
      hub, {"alice"}, std::make_shared<DirectSink>([this](const json& message) { return m_inbox.put(message); }));
};

}  // namespace

TEST_CASE("once: another owner's keys do not displace a key") {
  Once once;
  CHECK(make(once, "bob", "edit 1", k_start).state == State::first);
  for (int i = 0; i < 1001; ++i) {
    make(once, "alice", fmt::format("k{}", i), k_start);
  }
  CHECK(make(once, "bob", "edit 1", k_start).state == State::finished);
  CHECK(make(once, "alice", "k0", k_start).state == State::finished);
}

TEST_CASE("once: a key is kept for an hour after its call ended") {
  Once once;
  const auto began = once.enter("alice", once_mark("alice", "slow", "edit"), k_start);
  REQUIRE(began.state == State::first);
  const auto ended = k_start + std::chrono::hours(2);
  CHECK(once.enter("alice", once_mark("alice", "slow", "edit"), ended).state == State::running);
  once.finish(*began.attempt, result_of(10), ended);
  CHECK(make(once, "alice", "slow", ended + seconds(3600)).state == State::finished);
  CHECK(make(once, "alice", "slow", ended + seconds(3601)).state == State::first);
}

TEST_CASE("once: a clock reading from before the first call drops no key") {
  Once once;
  make(once, "alice", "k", k_start + seconds(1));
  make(once, "alice", "other", k_start);
  CHECK(make(once, "alice", "k", k_start + seconds(1)).state == State::finished);

  Once later;
  make(later, "alice", "k", k_start + std::chrono::hours(3));
  make(later, "alice", "other", k_start);  // further back than a key is kept
  CHECK(make(later, "alice", "k", k_start + std::chrono::hours(3)).state == State::finished);
}

TEST_CASE("once: results are dropped before keys, and the outcome stays") {
  Once once({.result_bytes = 100'000, .result_bytes_per_owner = 50'000});
  for (int i = 0; i < 40; ++i) {
    make(once, "alice", fmt::format("read {}", i), k_start, 20'000);
  }
  const auto dropped = make(once, "alice", "read 0", k_start);
  CHECK(dropped.state == State::forgotten);
  CHECK_FALSE(dropped.outcome.is_error());
  CHECK(dropped.outcome.text() == "revision 3f2a");
  CHECK(make(once, "alice", "read 39", k_start).state == State::finished);
  CHECK(make(once, "alice", "read 38", k_start).state == State::finished);
  CHECK(make(once, "alice", "read 37", k_start).state == State::forgotten);
}

TEST_CASE("once: a result beyond the owner's limit displaces no other") {
  Once once({.result_bytes = 100'000, .result_bytes_per_owner = 50'000});
  make(once, "alice", "small", k_start, 100);
  make(once, "alice", "large", k_start, 60'000);
  CHECK(make(once, "alice", "large", k_start).state == State::forgotten);
  CHECK(make(once, "alice", "small", k_start).state == State::finished);
}

TEST_CASE("once: the owner with the most result bytes loses its oldest result first") {
  Once once({.result_bytes = 60'000, .result_bytes_per_owner = 50'000});  // two results for alice, or alice and bob
  make(once, "bob", "b", k_start, 20'000);
  make(once, "alice", "a0", k_start, 20'000);
  CHECK(make(once, "alice", "a0", k_start).state == State::finished);
  make(once, "alice", "a1", k_start, 20'000);
  CHECK(make(once, "bob", "b", k_start).state == State::finished);
  CHECK(make(once, "alice", "a0", k_start).state == State::forgotten);
  CHECK(make(once, "alice", "a1", k_start).state == State::finished);
}

TEST_CASE("once: a full table refuses new keys of only its owner, until some expire") {
  Once once({.keys_per_owner = 3});
  for (const char* key : {"1", "2"}) {
    make(once, "alice", key, k_start);
  }
  const auto running = once.enter("alice", once_mark("alice", "3", "edit"), k_start);
  CHECK(running.state == State::first);
  CHECK(make(once, "alice", "4", k_start).state == State::full);
  CHECK(make(once, "alice", "1", k_start).state == State::finished);
  CHECK(make(once, "bob", "4", k_start).state == State::first);
  once.give_up(*running.attempt);
  CHECK(make(once, "alice", "4", k_start).state == State::first);
  CHECK(make(once, "alice", "5", k_start).state == State::full);
  CHECK(make(once, "alice", "5", k_start + seconds(3601)).state == State::first);
}

TEST_CASE("once: a conflict is reported during the call, after it and without result") {
  Once once({.result_bytes = 0, .result_bytes_per_owner = 0});
  const auto running = once.enter("alice", once_mark("alice", "k", "edit"), k_start);
  CHECK(once.enter("alice", once_mark("alice", "k", "write"), k_start).state == State::conflict);
  once.finish(*running.attempt, result_of(1), k_start);
  CHECK(once.enter("alice", once_mark("alice", "k", "write"), k_start).state == State::conflict);
  CHECK(once.enter("alice", once_mark("alice", "k", "edit"), k_start).state == State::forgotten);
}

TEST_CASE("once: the outcome of an error is its code") {
  Once once({.result_bytes = 0, .result_bytes_per_owner = 0});
  const auto first = once.enter("alice", once_mark("alice", "k", "edit"), k_start);
  once.finish(*first.attempt, error_result({ErrorCode::no_match, "not found", ""}), k_start);
  const auto again = once.enter("alice", once_mark("alice", "k", "edit"), k_start);
  CHECK(again.outcome.is_error());
  CHECK(again.outcome.text() == "no_match");
}

TEST_CASE("once: the outcome of a protocol error is an error") {
  ToolResult result;
  result.protocol_error = ProtocolError{};
  CHECK(OnceOutcome(result).is_error());
  CHECK(OnceOutcome(result).text() == "protocol_error");
}

TEST_CASE("once: an expired key leaves no result behind") {
  OnceKeys keys(100'000);
  keys.put({'1'}, {.finished_s = 1}, std::make_shared<const ToolResult>(result_of(1000)));
  keys.put({'2'}, {.finished_s = 3}, std::make_shared<const ToolResult>(result_of(1)));
  const std::size_t both = keys.result_bytes();
  keys.expire(2);
  CHECK(keys.size() == 1);
  CHECK(keys.result_bytes() + 1000 <= both);
  CHECK_FALSE(keys.result({'1'}));
  CHECK(keys.result({'2'}));
}

TEST_CASE("once: every part of a result counts toward the limit") {
  const std::string large(60'000, 'x');
  ToolResult structured = result_of(1);
  structured.structured = {{"value", large}};
  ToolResult blocks = result_of(1);
  blocks.more_content = {{{"type", "text"}, {"text", large}}};
  for (const ToolResult& result : {result_of(large.size()), structured, blocks}) {
    OnceKeys keys(50'000);
    keys.put({'k'}, {}, std::make_shared<const ToolResult>(result));
    CHECK(keys.size() == 1);
    CHECK_FALSE(keys.result({'k'}));
  }
}

TEST_CASE("once: a key without its result takes about 150 bytes") {
  constexpr std::size_t k_tree_node = 32;
  constexpr std::size_t k_allocator = 16;
  constexpr std::size_t k_order = sizeof(void*);
  CHECK(sizeof(std::pair<const OnceKeys::Digest, OnceKeys::Kept>) + k_tree_node + k_allocator + k_order <= 152);
}

TEST_CASE("call: a repetition reports already_done if the result was dropped") {
  Desk desk;
  const json first = desk.call("edit", "k", {{"bytes", 9'000'000}});
  CHECK(field(first, "isError") == false);
  const json again = desk.call("edit", "k", {{"bytes", 9'000'000}});
  CHECK(field(again, "isError") == true);
  const json& error = field(again, "structuredContent", "error");
  CHECK(field(error, "code") == "already_done");
  CHECK(field(error, "outcome", "isError") == false);
  CHECK(field(error, "outcome", "text") == "revision 3f2a");
  CHECK(field(error, "message").get<std::string>().find("revision 3f2a") != std::string::npos);
  CHECK_FALSE(field(error, "nextStep").get<std::string>().empty());
  CHECK(desk.edits == 1);
}

TEST_CASE("call: a completed change is stored even if the call was cancelled") {
  Desk desk;
  desk.cancels_itself = true;
  desk.send("edit", "k", {{"bytes", 1}});
  CHECK(desk.conversation->wait_for_calls(Deadline::after(k_patience)));
  CHECK(field(desk.call("edit", "k", {{"bytes", 1}}), "isError") == false);
  CHECK(desk.edits == 1);
}

TEST_CASE("call: a cancelled change with an unknown outcome is not made again") {
  for (const bool is_unknown : {true, false}) {
    CAPTURE(is_unknown);
    Desk desk;
    desk.cancels_itself = true;
    desk.error = Error{ErrorCode::timed_out, "no reply", "", is_unknown};
    desk.send("edit", "k", {{"bytes", 1}});
    CHECK(desk.conversation->wait_for_calls(Deadline::after(k_patience)));
    desk.error.reset();
    CHECK(field(desk.call("edit", "k", {{"bytes", 1}}), "isError") == is_unknown);
    CHECK(desk.edits == (is_unknown ? 1 : 2));
  }
}

TEST_CASE("call: a key beyond the owner's limit is refused and the call is not made") {
  Desk desk;
  for (int i = 0; i < 100'000; ++i) {
    const auto entered = desk.hub.once.enter("alice", once_mark("alice", fmt::format("old {}", i), "x"), Clock::now());
    desk.hub.once.finish(*entered.attempt, result_of(1), Clock::now());
  }
  CHECK(field(desk.call("edit", "new", {{"bytes", 1}}), "structuredContent", "error", "code") == "too_many_keys");
  CHECK(desk.edits == 0);
}

TEST_CASE("call: a key of more than 200 bytes is refused and the call is not made") {
  Desk desk;
  CHECK(field(desk.call("edit", std::string(200, 'k'), {{"bytes", 1}}), "isError") == false);
  const json refused = desk.call("edit", std::string(201, 'k'), {{"bytes", 1}});
  CHECK(field(refused, "structuredContent", "error", "code") == "bad_idempotency_key");
  CHECK(desk.edits == 1);
}

TEST_CASE("call: the key of one tool's call is a conflict for another tool") {
  Desk desk;
  CHECK(field(desk.call("edit", "k", {{"bytes", 1}}), "isError") == false);
  CHECK(field(desk.call("other", "k", {{"bytes", 1}}), "structuredContent", "error", "code") == "idempotency_conflict");
}

TEST_CASE("call: a question to the client does not use up the key") {
  Desk desk;
  desk.asks_first = true;
  desk.call("edit", "k", {{"bytes", 1}});
  CHECK(field(desk.call("edit", "k", {{"bytes", 1}}), "isError") == false);
  CHECK(desk.edits == 2);
}

TEST_CASE("once: notices belong to the first reply only") {
  Once once;
  auto entered = once.enter("alice", once_mark("alice", "k", "edit"), k_start);
  REQUIRE(entered.state == State::first);
  ToolResult result = result_of(10);
  result.notices = {"p1 ended"};
  once.finish(*entered.attempt, result, k_start);
  const auto again = once.enter("alice", once_mark("alice", "k", "edit"), k_start);
  REQUIRE(again.state == State::finished);
  CHECK(again.result->text == std::string(10, 'x'));
  CHECK(again.result->notices.empty());
}
