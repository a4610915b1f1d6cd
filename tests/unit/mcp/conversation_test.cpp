#include "mcp/conversation.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>

#include "support/field.hpp"
#include "unit/mcp/client.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::field;

TEST_CASE("conversation: a call is answered once, under its id, with the tool's result") {
  Client client;
  client.call(1, "echo", {{"a", "b"}});
  const json answer = client.inbox.next();
  CHECK(field(answer, "id") == 1);
  CHECK(field(answer, "jsonrpc") == "2.0");
  CHECK(text_of(answer) == R"({"a":"b"})");
  CHECK(field(answer, "result", "isError") == false);
  client.expect_nothing_more();
}

TEST_CASE("conversation: a call without arguments has an empty object") {
  Client client;
  client.request(1, "tools/call", {{"name", "echo"}});
  CHECK(text_of(client.inbox.next()) == "{}");
  client.request(2, "tools/call", {{"name", "echo"}, {"arguments", nullptr}});
  CHECK(text_of(client.inbox.next()) == "{}");
}

TEST_CASE("conversation: a tool gets the owner of the call") {
  Client client;
  client.call(1, "owner");
  CHECK(text_of(client.inbox.next()) == "alice");
}

TEST_CASE("conversation: a slow call does not delay another") {
  Client client;
  client.call("slow", "gate");
  client.gate.wait_for_arrivals(1);
  client.call("quick", "echo");
  CHECK(field(client.inbox.next(), "id") == "quick");
  client.gate.open();
  CHECK(field(client.inbox.next(), "id") == "slow");
  client.expect_nothing_more();
}

TEST_CASE("conversation: each of many concurrent calls is answered exactly once") {
  Client client({.calls = 64});
  std::set<int> missing;
  for (int i = 0; i < 60; ++i) {
    client.call(i, i % 2 == 0 ? "gate" : "echo");
    missing.insert(i);
  }
  client.gate.open();
  while (!missing.empty()) {
    const json answer = client.inbox.next();
    REQUIRE(answer.contains("result"));
    CHECK(missing.erase(field(answer, "id").get<int>()) == 1);
  }
  client.expect_nothing_more();
}

TEST_CASE("conversation: an invalid request gets an error that names the problem") {
  Client client;
  const auto error_for = [&](const std::string& method, const json& params) {
    client.request(1, method, params);
    const json answer = client.inbox.next();
    CHECK(field(answer, "id") == 1);
    return field(answer, "error", "code").get<int>();
  };
  CHECK(error_for("no/such/method", {}) == k_method_not_found);
  CHECK(error_for("tools/call", {}) == k_invalid_params);
  CHECK(error_for("tools/call", {{"name", 5}}) == k_invalid_params);
  CHECK(error_for("tools/call", {{"name", "no_such_tool"}}) == k_invalid_params);
  CHECK(error_for("tools/call", {{"name", "echo"}, {"arguments", "text"}}) == k_invalid_params);
  CHECK(error_for("initialize", {}) == k_invalid_params);
  CHECK(error_for("server/discover", {}) == k_invalid_params);
  client.expect_nothing_more();
}

TEST_CASE("conversation: invalid input gets an error, and the next message is served") {
  Client client;
  client.send_text("{");
  CHECK(field(client.inbox.next(), "error", "code") == k_parse_error);
  client.send_text("[]");
  CHECK(field(client.inbox.next(), "error", "code") == k_invalid_request);
  client.send_text(R"({"jsonrpc":"2.0","id":9})");
  const json answer = client.inbox.next();
  CHECK(field(answer, "error", "code") == k_invalid_request);
  CHECK(field(answer, "id") == 9);
  client.expect_nothing_more();
}

TEST_CASE("conversation: notifications and unexpected answers get no reply") {
  Client client;
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/no_such_thing"}});
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}});
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", {1, 2}}}}});
  client.send({{"jsonrpc", "2.0"}, {"id", 3}, {"result", json::object()}});
  client.expect_nothing_more();
}

TEST_CASE("conversation: a cancelled call is interrupted and gets no reply") {
  Client client;
  client.call(1, "gate");
  client.call("1", "gate");
  client.gate.wait_for_arrivals(2);
  client.cancel(1);
  client.gate.open();
  const json answer = client.inbox.next();
  CHECK(field(answer, "id") == "1");  // another id
  client.expect_nothing_more();
}

TEST_CASE("conversation: the id of a cancelled call can be used again") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.cancel(1);
  REQUIRE(client.conversation().wait_for_calls(Deadline::after(k_patience)));
  client.call(1, "echo");
  CHECK(text_of(client.inbox.next()) == "{}");
  client.expect_nothing_more();
}

TEST_CASE("conversation: cancelling an unknown call does nothing") {
  Client client;
  client.cancel(1);
  client.call(1, "echo");
  CHECK(field(client.inbox.next(), "id") == 1);
  client.cancel(1);
  client.call(1, "echo");
  CHECK(field(client.inbox.next(), "id") == 1);
  client.expect_nothing_more();
}

TEST_CASE("conversation: the client's own timeout differs from a cancellation") {
  for (const json& reason : {json("own timeout"), json("AbortError"), json(5), json(nullptr)}) {
    CAPTURE(reason);
    Client client;
    client.call(1, "gate");
    client.gate.wait_for_arrivals(1);
    client.cancel(1, reason);
    CHECK(client.gate.wait_for_end() == (reason == "own timeout" ? StopReason::timed_out : StopReason::cancelled));
    client.expect_nothing_more();
  }
}

TEST_CASE("conversation: work left running by a client timeout is not cancelled again") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.cancel(1, "own timeout");
  client.cancel(1, "AbortError: The operation was aborted.");
  CHECK(client.gate.wait_for_end() == StopReason::timed_out);
  client.expect_nothing_more();
}

TEST_CASE("conversation: detached calls return at once and are answered") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.conversation().detach_calls();
  CHECK(text_of(client.inbox.next()) == "detached");
  client.expect_nothing_more();
}

TEST_CASE("interruption: the first reason to stop counts") {
  Interruption cancelled_first;
  CHECK(cancelled_first.reason() == StopReason::none);
  CHECK_FALSE(cancelled_first.token().stop_requested());
  cancelled_first.interrupt(StopReason::cancelled);
  cancelled_first.interrupt(StopReason::detached);
  CHECK(cancelled_first.reason() == StopReason::cancelled);
  CHECK(cancelled_first.token().stop_requested());

  Interruption detached_first;
  detached_first.interrupt(StopReason::detached);
  detached_first.interrupt(StopReason::cancelled);
  CHECK(detached_first.reason() == StopReason::detached);
}

TEST_CASE("conversation: waiting for calls ends at its deadline") {
  Client client;
  CHECK(client.conversation().wait_for_calls(Deadline::after(milliseconds(0))));
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  CHECK_FALSE(client.conversation().wait_for_calls(Deadline::after(milliseconds(0))));
  client.gate.open();
  CHECK(client.conversation().wait_for_calls(Deadline::after(k_patience)));
}

TEST_CASE("conversation: all calls can be detached and waited for") {
  Client client;
  for (int i = 0; i < 8; ++i) {
    client.call(i, "gate");
  }
  client.gate.wait_for_arrivals(8);
  client.conversation().detach_calls();
  CHECK(client.conversation().wait_for_calls(Deadline::after(k_patience)));
  for (int i = 0; i < 8; ++i) {
    CHECK(text_of(client.inbox.next()) == "detached");
  }
}

TEST_CASE("conversation: the id of a running call cannot be used again") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.call(1, "echo");
  const json refusal = client.inbox.next();
  CHECK(field(refusal, "id") == 1);
  CHECK(field(refusal, "error", "code") == k_invalid_request);
  client.gate.open();
  CHECK(text_of(client.inbox.next()) == "none");
  client.expect_nothing_more();
}

TEST_CASE("conversation: an id can be used again after its answer") {
  Client client;
  for (int i = 0; i < 200; ++i) {
    client.call("same", "echo");
    REQUIRE(client.inbox.next().contains("result"));
  }
}

TEST_CASE("conversation: an exception of a tool is an error without its text") {
  Client client;
  client.call(1, "throw");
  const json answer = client.inbox.next();
  CHECK(field(answer, "result", "isError") == true);
  CHECK(field(answer, "result", "structuredContent", "error", "code") == "internal_error");
  CHECK(answer.dump().find("a secret") == std::string::npos);
  client.expect_nothing_more();
}

TEST_CASE("conversation: a failed tool returns a result with the next step") {
  Client client;
  client.call(1, "refuse");
  const json answer = client.inbox.next();
  CHECK(field(answer, "result", "isError") == true);
  CHECK(text_of(answer) == "Error: it did not work\nTry again");
  CHECK(field(answer, "result", "structuredContent", "error", "code") == "io_error");
  CHECK(field(answer, "result", "structuredContent", "error", "nextStep") == "Try again");
}

TEST_CASE("conversation: a call over the limit gets a next step, and its id is free") {
  Client client({.calls = 1, .waiting = 0});
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  for (int i = 0; i < 2; ++i) {
    client.call(2, "echo");
    const json answer = client.inbox.next();
    CHECK(field(answer, "id") == 2);
    CHECK(field(answer, "result", "isError") == true);
    CHECK(field(answer, "result", "structuredContent", "error", "code") == "too_many_calls");
    CHECK(text_of(answer).find("background: true") != std::string::npos);
  }
  client.gate.open();
  CHECK(field(client.inbox.next(), "id") == 1);
  client.expect_nothing_more();
}

TEST_CASE("conversation: lists and pings are answered while all threads are busy") {
  Client client({.calls = 1});
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.request(2, "tools/list");
  CHECK(field(client.inbox.next(), "id") == 2);
  client.request(3, "ping");
  CHECK(field(client.inbox.next(), "id") == 3);
  client.gate.open();
  CHECK(field(client.inbox.next(), "id") == 1);
}

TEST_CASE("progress: has the token, increases strictly, and precedes the answer") {
  for (const json& token : {json("token"), json(17), json(0), json("")}) {
    Client client;
    client.call(1, "progress", {{"steps", 5}}, {{"progressToken", token}});
    double last = -1;
    for (int i = 0; i < 5; ++i) {
      const json note = client.inbox.next();
      CHECK(field(note, "method") == "notifications/progress");
      CHECK_FALSE(note.contains("id"));
      CHECK(field(note, "params", "progressToken") == token);
      CHECK(field(note, "params", "message") == "step");
      CHECK(field(note, "params", "progress").get<double>() > last);
      last = field(note, "params", "progress");
    }
    CHECK(text_of(client.inbox.next()) == "told");
    client.expect_nothing_more();
  }
}

TEST_CASE("progress: without a usable token none is sent") {
  for (const json& meta : {json(), json::object(), json{{"progressToken", nullptr}}, json{{"progressToken", 1.5}},
                           json{{"progressToken", {1, 2}}}, json("text")}) {
    CAPTURE(meta);
    Client client;
    client.call(1, "progress", {{"steps", 5}}, meta);
    CHECK(text_of(client.inbox.next()) == "not asked");
    client.expect_nothing_more();
  }
}

TEST_CASE("conversation: a stateless request with invalid metadata gets an error") {
  Client client;
  const auto answer_to = [&](const json& meta) {
    client.request(1, "tools/list", {{"_meta", meta}});
    return client.inbox.next();
  };
  const json good = {{k_meta_version, "2026-07-28"}, {k_meta_capabilities, json::object()}};
  CHECK(field(answer_to(good), "result", "resultType") == "complete");

  const json unsupported = answer_to({{k_meta_version, "2031-01-01"}, {k_meta_capabilities, json::object()}});
  CHECK(field(unsupported, "error", "code") == k_unsupported_version);
  CHECK(field(unsupported, "error", "data", "supported") == json::array({"2026-07-28"}));
  CHECK(field(unsupported, "error", "data", "requested") == "2031-01-01");

  CHECK(field(answer_to({{k_meta_version, 5}, {k_meta_capabilities, json::object()}}), "error", "code") ==
        k_invalid_params);
  CHECK(field(answer_to({{k_meta_version, "2026-07-28"}}), "error", "code") == k_invalid_params);

  client.call(2, "echo", {{"a", 1}}, good);
  CHECK(text_of(client.inbox.next()) == R"({"a":1})");
}

TEST_CASE("progress: none is sent after a cancellation") {
  Client client;
  client.call(1, "late progress", json::object(), {{"progressToken", 1}});
  client.gate.wait_for_arrivals(1);
  client.cancel(1);
  client.expect_nothing_more();
}
