#include "mcp/conversation.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>

#include "unit/mcp/client.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;

TEST_CASE("a call is answered once, under its id, with what the tool says") {
  Client client;
  client.call(1, "echo", {{"a", "b"}});
  const json answer = client.inbox.next();
  CHECK(answer["id"] == 1);
  CHECK(answer["jsonrpc"] == "2.0");
  CHECK(text_of(answer) == R"({"a":"b"})");
  CHECK(answer["result"]["isError"] == false);
  client.expect_nothing_more();
}

TEST_CASE("a call without arguments gets none") {
  Client client;
  client.request(1, "tools/call", {{"name", "echo"}});
  CHECK(text_of(client.inbox.next()) == "{}");
  client.request(2, "tools/call", {{"name", "echo"}, {"arguments", nullptr}});
  CHECK(text_of(client.inbox.next()) == "{}");
}

TEST_CASE("a tool knows whose call it serves") {
  Client client;
  client.call(1, "owner");
  CHECK(text_of(client.inbox.next()) == "alice");
}

TEST_CASE("calls run side by side: a slow one delays no other") {
  Client client;
  client.call("slow", "gate");
  client.gate.wait_for_arrivals(1);
  client.call("quick", "echo");
  CHECK(client.inbox.next()["id"] == "quick");
  client.gate.open();
  CHECK(client.inbox.next()["id"] == "slow");
  client.expect_nothing_more();
}

TEST_CASE("of many calls at once each is answered exactly once") {
  Client client(64);
  std::set<int> missing;
  for (int i = 0; i < 60; ++i) {
    client.call(i, i % 2 == 0 ? "gate" : "echo");
    missing.insert(i);
  }
  client.gate.open();
  while (!missing.empty()) {
    const json answer = client.inbox.next();
    REQUIRE(answer.contains("result"));
    CHECK(missing.erase(answer["id"].get<int>()) == 1);
  }
  client.expect_nothing_more();
}

TEST_CASE("a request that is wrong is answered with what is wrong") {
  Client client;
  const auto error_for = [&](const std::string& method, const json& params) {
    client.request(1, method, params);
    const json answer = client.inbox.next();
    CHECK(answer["id"] == 1);
    return answer["error"]["code"].get<int>();
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

TEST_CASE("what is no message is answered with an error and the next one is taken") {
  Client client;
  client.send_text("{");
  CHECK(client.inbox.next()["error"]["code"] == k_parse_error);
  client.send_text("[]");
  CHECK(client.inbox.next()["error"]["code"] == k_invalid_request);
  client.send_text(R"({"jsonrpc":"2.0","id":9})");
  const json answer = client.inbox.next();
  CHECK(answer["error"]["code"] == k_invalid_request);
  CHECK(answer["id"] == 9);
  client.expect_nothing_more();
}

TEST_CASE("notifications and stray answers are not answered") {
  Client client;
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/no_such_thing"}});
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}});
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", {1, 2}}}}});
  client.send({{"jsonrpc", "2.0"}, {"id", 3}, {"result", json::object()}});
  client.expect_nothing_more();
}

TEST_CASE("a cancelled call is told so and never answered") {
  Client client;
  client.call(1, "gate");
  client.call("1", "gate");
  client.gate.wait_for_arrivals(2);
  client.cancel(1);
  client.gate.open();
  const json answer = client.inbox.next();
  CHECK(answer["id"] == "1");  // another id
  client.expect_nothing_more();
}

TEST_CASE("the id of a cancelled call can be used again") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.cancel(1);
  REQUIRE(client.conversation().wait_for_calls(Deadline::after(k_patience)));
  client.call(1, "echo");
  CHECK(text_of(client.inbox.next()) == "{}");
  client.expect_nothing_more();
}

TEST_CASE("cancelling what does not run does nothing") {
  Client client;
  client.cancel(1);
  client.call(1, "echo");
  CHECK(client.inbox.next()["id"] == 1);
  client.cancel(1);
  client.call(1, "echo");
  CHECK(client.inbox.next()["id"] == 1);
  client.expect_nothing_more();
}

TEST_CASE("conversation: a cancellation by the client's own timeout is told from any other") {
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

TEST_CASE("conversation: a second cancellation does not end what the client's timeout left running") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.cancel(1, "own timeout");
  client.cancel(1, "AbortError: The operation was aborted.");
  CHECK(client.gate.wait_for_end() == StopReason::timed_out);
  client.expect_nothing_more();
}

TEST_CASE("detached calls return at once and are answered") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.conversation().detach_calls();
  CHECK(text_of(client.inbox.next()) == "detached");
  client.expect_nothing_more();
}

TEST_CASE("the first reason to stop stays: detaching does not undo a cancellation, nor the other way round") {
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

TEST_CASE("waiting for calls ends at its deadline") {
  Client client;
  CHECK(client.conversation().wait_for_calls(Deadline::after(milliseconds(0))));
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  CHECK_FALSE(client.conversation().wait_for_calls(Deadline::after(milliseconds(0))));
  client.gate.open();
  CHECK(client.conversation().wait_for_calls(Deadline::after(k_patience)));
}

TEST_CASE("all calls of a conversation can be detached and waited for") {
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

TEST_CASE("an id that still runs cannot be used a second time") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.call(1, "echo");
  const json refusal = client.inbox.next();
  CHECK(refusal["id"] == 1);
  CHECK(refusal["error"]["code"] == k_invalid_request);
  client.gate.open();
  CHECK(text_of(client.inbox.next()) == "none");
  client.expect_nothing_more();
}

TEST_CASE("an id can be used again as soon as its answer is there") {
  Client client;
  for (int i = 0; i < 200; ++i) {
    client.call("same", "echo");
    REQUIRE(client.inbox.next().contains("result"));
  }
}

TEST_CASE("a tool that throws is an error result that does not tell why") {
  Client client;
  client.call(1, "throw");
  const json answer = client.inbox.next();
  CHECK(answer["result"]["isError"] == true);
  CHECK(answer["result"]["structuredContent"]["error"]["code"] == "internal_error");
  CHECK(answer.dump().find("a secret") == std::string::npos);
  client.expect_nothing_more();
}

TEST_CASE("a tool that could not do it says so in a result, with the next step") {
  Client client;
  client.call(1, "refuse");
  const json answer = client.inbox.next();
  CHECK(answer["result"]["isError"] == true);
  CHECK(text_of(answer) == "Error: it did not work\nTry again");
  CHECK(answer["result"]["structuredContent"]["error"]["code"] == "io_error");
  CHECK(answer["result"]["structuredContent"]["error"]["nextStep"] == "Try again");
}

TEST_CASE("a call beyond the limit is refused with the way out, and its id is free") {
  Client client(1);
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  for (int i = 0; i < 2; ++i) {
    client.call(2, "echo");
    const json answer = client.inbox.next();
    CHECK(answer["id"] == 2);
    CHECK(answer["result"]["isError"] == true);
    CHECK(answer["result"]["structuredContent"]["error"]["code"] == "too_many_calls");
    CHECK(text_of(answer).find("background: true") != std::string::npos);
  }
  client.gate.open();
  CHECK(client.inbox.next()["id"] == 1);
  client.expect_nothing_more();
}

TEST_CASE("lists and pings are answered while every thread is busy") {
  Client client(1);
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.request(2, "tools/list");
  CHECK(client.inbox.next()["id"] == 2);
  client.request(3, "ping");
  CHECK(client.inbox.next()["id"] == 3);
  client.gate.open();
  CHECK(client.inbox.next()["id"] == 1);
}

TEST_CASE("progress is told under the token, strictly increasing, before the answer") {
  for (const json& token : {json("token"), json(17), json(0), json("")}) {
    Client client;
    client.call(1, "progress", {{"steps", 5}}, {{"progressToken", token}});
    double last = -1;
    for (int i = 0; i < 5; ++i) {
      const json note = client.inbox.next();
      CHECK(note["method"] == "notifications/progress");
      CHECK_FALSE(note.contains("id"));
      CHECK(note["params"]["progressToken"] == token);
      CHECK(note["params"]["message"] == "step");
      CHECK(note["params"]["progress"].get<double>() > last);
      last = note["params"]["progress"];
    }
    CHECK(text_of(client.inbox.next()) == "told");
    client.expect_nothing_more();
  }
}

TEST_CASE("without a usable token no progress is told") {
  for (const json& meta : {json(), json::object(), json{{"progressToken", nullptr}}, json{{"progressToken", 1.5}},
                           json{{"progressToken", {1, 2}}}, json("text")}) {
    CAPTURE(meta);
    Client client;
    client.call(1, "progress", {{"steps", 5}}, meta);
    CHECK(text_of(client.inbox.next()) == "not asked");
    client.expect_nothing_more();
  }
}

TEST_CASE("a stateless request says who it is, and is told if it does not say it right") {
  Client client;
  const auto answer_to = [&](const json& meta) {
    client.request(1, "tools/list", {{"_meta", meta}});
    return client.inbox.next();
  };
  const json good = {{k_meta_version, "2026-07-28"}, {k_meta_capabilities, json::object()}};
  CHECK(answer_to(good)["result"]["resultType"] == "complete");

  const json unsupported = answer_to({{k_meta_version, "2031-01-01"}, {k_meta_capabilities, json::object()}});
  CHECK(unsupported["error"]["code"] == k_unsupported_version);
  CHECK(unsupported["error"]["data"]["supported"] == json::array({"2026-07-28"}));
  CHECK(unsupported["error"]["data"]["requested"] == "2031-01-01");

  CHECK(answer_to({{k_meta_version, 5}, {k_meta_capabilities, json::object()}})["error"]["code"] == k_invalid_params);
  CHECK(answer_to({{k_meta_version, "2026-07-28"}})["error"]["code"] == k_invalid_params);

  client.call(2, "echo", {{"a", 1}}, good);
  CHECK(text_of(client.inbox.next()) == R"({"a":1})");
}

TEST_CASE("no progress is sent after a cancel") {
  Client client;
  client.call(1, "late progress", json::object(), {{"progressToken", 1}});
  client.gate.wait_for_arrivals(1);
  client.cancel(1);
  client.expect_nothing_more();
}
