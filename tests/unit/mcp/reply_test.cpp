#include "mcp/reply.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/field.hpp"
#include "unit/mcp/client.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::field;

TEST_CASE("reply: a dropped one sends an internal error, an answered one nothing more") {
  std::vector<json> sent;
  const auto sink = std::make_shared<DirectSink>([&](const json& message) {
    sent.push_back(message);
    return true;
  });
  { const Reply dropped(7, sink); }
  REQUIRE(sent.size() == 1);
  CHECK(field(sent[0], "id") == 7);
  CHECK(field(sent[0], "error", "code") == k_internal_error);

  {
    Reply first(8, sink);
    Reply moved(std::move(first));
    moved.result(1);
  }
  REQUIRE(sent.size() == 2);
  CHECK(field(sent[1], "result") == 1);

  Reply(9, sink).silence();
  CHECK(sent.size() == 2);
}

TEST_CASE("batch: the revision that has batches gets one array") {
  Client client;
  client.initialize("2025-03-26");
  client.send({{{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}},
               {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}},
               {{"jsonrpc", "2.0"}, {"id", 2}, {"method", "tools/call"}, {"params", {{"name", "echo"}}}},
               {{"jsonrpc", "2.0"}, {"id", 3}, {"method", "no/such"}},
               {{"jsonrpc", "2.0"}, {"id", 4}},
               {{"jsonrpc", "2.0"}, {"id", 5}, {"result", 1}}});
  const json answers = client.inbox.next();
  REQUIRE(answers.is_array());
  std::set<int> ids;
  for (const json& answer : answers) {
    ids.insert(field(answer, "id").get<int>());
  }
  CHECK(answers.size() == 4);
  CHECK(ids == std::set<int>{1, 2, 3, 4});
  client.expect_nothing_more();
}

TEST_CASE("batch: cancelled requests are left out, and an empty answer is not sent") {
  Client client;
  client.initialize("2025-03-26");
  const json gate_call = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/call"}, {"params", {{"name", "gate"}}}};
  client.send(json::array({gate_call, {{"jsonrpc", "2.0"}, {"id", 2}, {"method", "ping"}}}));
  client.gate.wait_for_arrivals(1);
  client.cancel(1);
  const json answers = client.inbox.next();
  REQUIRE(answers.size() == 1);
  CHECK(field(answers, 0, "id") == 2);

  REQUIRE(client.conversation().wait_for_calls(Deadline::after(k_patience)));
  client.send(json::array({gate_call}));
  client.gate.wait_for_arrivals(2);
  client.cancel(1);
  client.expect_nothing_more();
}

TEST_CASE("batch: notifications alone get no reply") {
  Client client;
  client.initialize("2025-03-26");
  client.send(json::array({{{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}}));
  client.expect_nothing_more();
}

TEST_CASE("batch: progress is sent at once") {
  Client client;
  client.initialize("2025-03-26");
  client.send(json::array(
      {{{"jsonrpc", "2.0"},
        {"id", 1},
        {"method", "tools/call"},
        {"params", {{"name", "progress"}, {"arguments", {{"steps", 1}}}, {"_meta", {{"progressToken", "t"}}}}}}}));
  CHECK(field(client.inbox.next(), "method") == "notifications/progress");
  CHECK(client.inbox.next().is_array());
}

TEST_CASE("batch: an empty or too large one is refused as a whole") {
  Client client;
  client.initialize("2025-03-26");
  const json ping = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}};
  for (const std::size_t size : {0U, 101U}) {
    client.send(json(json::array_t(size, ping)));
    const json answer = client.inbox.next();
    CHECK(field(answer, "error", "code") == k_invalid_request);
    CHECK_FALSE(answer.contains("id"));
  }
  client.send(json(json::array_t(100, ping)));
  CHECK(client.inbox.next().size() == 100);
  client.expect_nothing_more();
}

TEST_CASE("batch: a handshake within it is refused") {
  Client client;
  client.initialize("2025-03-26");
  const json handshake = request_message(1, "initialize", {{"protocolVersion", "2025-11-25"}});
  const json ping = request_message(2, "ping", json::object());
  for (int i = 0; i < 2; ++i) {  // batches are still taken after it
    client.send(json::array({handshake, ping}));
    const json answers = client.inbox.next();
    REQUIRE(answers.size() == 2);
    CHECK(field(answers, 0, "id") == 1);
    CHECK(field(answers, 0, "error", "code") == k_invalid_request);
    CHECK(field(answers, 1, "result") == json::object());
  }
}

TEST_CASE("batch: other revisions refuse it") {
  for (const std::string version : {"2024-11-05", "2025-06-18", "2025-11-25"}) {
    Client client;
    client.initialize(version);
    client.send(json::array({{{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}}}));
    CHECK(field(client.inbox.next(), "error", "code") == k_invalid_request);
    client.expect_nothing_more();
  }
}

TEST_CASE("batch: sent when the last request is answered, dropped or silenced") {
  std::vector<json> sent;
  const auto sink = std::make_shared<BatchSink>(3, std::make_shared<DirectSink>([&](const json& message) {
                                                  sent.push_back(message);
                                                  return true;
                                                }));
  Reply(1, sink).result("done");
  Reply(2, sink).silence();
  CHECK(sent.empty());
  { const Reply dropped(3, sink); }
  REQUIRE(sent.size() == 1);
  REQUIRE(sent[0].size() == 2);
  CHECK(field(sent[0][0], "id") == 1);
  CHECK(field(sent[0][1], "error", "code") == k_internal_error);
}

TEST_CASE("reply: a tool is notified once of the delivery of its result") {
  Client client;
  client.gate.open();
  client.call(1, "gate");
  CHECK(field(client.inbox.next(), "id") == 1);
  CHECK(client.deliveries.settled() == 1);
}

TEST_CASE("reply: a result is not delivered to a client that has gone") {
  Client client;
  client.gate.open();
  client.gone = true;
  client.call(1, "gate");
  CHECK(field(client.inbox.next(), "id") == 1);
  CHECK(client.deliveries.settled() == 0);
}

TEST_CASE("reply: the result of a cancelled call is not delivered") {
  Client client;
  client.call(1, "gate");
  client.gate.wait_for_arrivals(1);
  client.cancel(1);
  CHECK(client.deliveries.settled() == 0);
  client.expect_nothing_more();
}

TEST_CASE("reply: the results of a batch are delivered when the batch is sent") {
  Client client;
  client.initialize("2025-03-26");
  const auto call = [](int id, const char* name) {
    return request_message(id, "tools/call", {{"name", name}, {"arguments", json::object()}});
  };
  client.send(json::array({call(1, "gate"), call(2, "gate")}));
  client.gate.wait_for_arrivals(2);
  CHECK(client.deliveries.so_far() == 0);
  client.gate.open();
  CHECK(client.inbox.next().size() == 2);
  CHECK(client.deliveries.settled() == 2);
}

TEST_CASE("once: a stored result does not hold the delivery callback") {
  Client client;
  client.gate.open();
  for (const int id : {1, 2}) {
    client.call(id, "gate", json::object(), {{k_meta_idempotency_key, "key"}});
    CHECK(text_of(client.inbox.next()) == "none");
    CHECK(client.deliveries.settled() == 1);  // which waits for the destruction of every copy
  }
}
