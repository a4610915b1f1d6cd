// Resource limits that protect clients from each other.

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <vector>

#include "support/field.hpp"
#include "support/program.hpp"
#include "unit/mcp/transport/http/running.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::eventually;
using dockbridge::test::field;

namespace {

const HttpHeaders k_alice = {"Authorization: Bearer " + k_secret};
const HttpHeaders k_bob = {"Authorization: Bearer " + k_bobs_secret};

/// A call whose arguments are many small values.
std::string call_with_values(const std::string& value, std::size_t bytes) {
  std::string values;
  while (values.size() < bytes) {
    values += value + ",";
  }
  std::string text = body("tools/call", {{"name", "echo"}, {"arguments", {{"values", "HERE"}}}, {"_meta", k_meta}});
  return text.replace(text.find("\"HERE\""), 6, "[" + values + "0]");
}

}  // namespace

TEST_CASE("http: a new connection evicts the oldest idle one") {
  const Running server(limits([](http::Limits& l) { l.connections = 2; }));
  HttpConnection one = server.connect();  // it waits for a request from now on
  HttpConnection two = server.connect();
  CHECK(two.request("GET", "/healthz", {}).status == 200);
  HttpConnection three = server.connect();
  CHECK(three.request("GET", "/healthz", {}).status == 200);
  CHECK(one.ended());
  CHECK(two.request("GET", "/healthz", {}).status == 200);
}

TEST_CASE("http: connections that never send a request do not lock others out") {
  const Running server(limits([](http::Limits& l) {
    l.connections = 20;
    l.connections_per_address = 10;
  }));
  std::vector<HttpConnection> idle;
  for (int i = 0; i < 50; ++i) {
    idle.push_back(server.connect());
    idle.back().send("POST /mcp HTTP/1.1\r\nHost: local");  // half a head is not a request
  }
  for (int i = 0; i < 20; ++i) {
    CHECK(server.list().status == 200);
  }
  CHECK(idle.front().ended());
}

TEST_CASE("http: the connections of one address that serve requests are limited") {
  Running server(limits([](http::Limits& l) { l.connections_per_address = 2; }));
  std::vector<HttpConnection> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(server.connect());
    busy.back().send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
  }
  server.gate.wait_for_arrivals(2);
  HttpConnection refused = server.connect();
  const HttpAnswer answer = refused.receive();
  CHECK(answer.status == 503);
  CHECK(answer.header("Retry-After") == "1");
  server.gate.open();
  for (HttpConnection& connection : busy) {
    CHECK(connection.receive().status == 200);
  }
  CHECK(server.list().status == 200);
}

TEST_CASE("http: one owner leaves half of an address's connections to others") {
  const http::Limits limits;
  CHECK(limits.streams_per_owner + limits.requests_per_owner <= limits.connections_per_address / 2);
  CHECK(limits.connections_per_address < limits.connections);
  CHECK(limits.calls_per_owner > limits.requests_per_owner);
}

TEST_CASE("http: health requests without a token are few at a time") {
  std::promise<void> answered;
  const auto engine = answered.get_future().share();
  std::atomic<int> waiting = 0;
  HttpSettings settings;
  settings.health.ready = [&](bool has_token) -> Result<json> {
    if (!has_token) {
      ++waiting;
      engine.wait_for(seconds(20));
    }
    return json{{"status", "ok"}};
  };
  const Running server(limits([](http::Limits& l) { l.health_requests = 2; }), {{"alice", k_secret}}, settings);
  std::vector<HttpConnection> slow;
  for (int i = 0; i < 2; ++i) {
    slow.push_back(server.connect());
    slow.back().send_request("GET", "/readyz", {}, "");
  }
  eventually("both wait for the engine", [&] { return waiting == 2; });
  const HttpAnswer refused = server.connect().request("GET", "/readyz", {});
  CHECK(refused.status == 429);
  CHECK(refused.header("Retry-After") == "1");
  CHECK(server.connect().request("GET", "/readyz", k_alice).status == 200);
  CHECK(server.list(k_alice).status == 200);
  answered.set_value();
  for (HttpConnection& connection : slow) {
    CHECK(connection.receive().status == 200);
  }
  CHECK(server.connect().request("GET", "/readyz", {}).status == 200);
}

TEST_CASE("http: health requests with a token leave room for those without") {
  std::promise<void> answered;
  const auto engine = answered.get_future().share();
  std::atomic<int> waiting = 0;
  HttpSettings settings;
  settings.health.ready = [&](bool has_token) -> Result<json> {
    if (has_token) {
      ++waiting;
      engine.wait_for(seconds(20));
    }
    return json{{"status", "ok"}};
  };
  const Running server(limits([](http::Limits& l) { l.health_requests = 1; }), {{"alice", k_secret}}, settings);
  HttpConnection slow = server.connect();
  slow.send_request("GET", "/readyz", k_alice, "");
  eventually("it waits for the engine", [&] { return waiting == 1; });
  CHECK(server.connect().request("GET", "/readyz", {}).status == 200);
  answered.set_value();
  CHECK(slow.receive().status == 200);
}

TEST_CASE("http: without any tokens health requests are few at a time too") {
  std::promise<void> answered;
  const auto engine = answered.get_future().share();
  std::atomic<int> waiting = 0;
  HttpSettings settings;
  settings.health.ready = [&](bool) -> Result<json> {
    ++waiting;
    engine.wait_for(seconds(20));
    return json{{"status", "ok"}};
  };
  const Running server(limits([](http::Limits& l) { l.health_requests = 1; }), {}, settings);
  HttpConnection slow = server.connect();
  slow.send_request("GET", "/readyz", {}, "");
  eventually("it waits for the engine", [&] { return waiting == 1; });
  CHECK(server.connect().request("GET", "/readyz", {}).status == 429);
  answered.set_value();
  CHECK(slow.receive().status == 200);
}

TEST_CASE("http: one owner's sessions do not use up another's") {
  const Running server(limits([](http::Limits& l) { l.sessions_per_owner = 2; }),
                       {{"alice", k_secret}, {"bob", k_bobs_secret}});
  const std::string greeting = body("initialize", {{"protocolVersion", "2025-11-25"}});
  server.initialize(k_alice);
  server.initialize(k_alice);
  CHECK(server.post(with(plain_headers(), k_alice), greeting).status == 503);
  CHECK_FALSE(server.initialize(k_bob).empty());
  CHECK_FALSE(server.initialize(k_bob).empty());
  CHECK(server.post(with(plain_headers(), k_bob), greeting).status == 503);
}

TEST_CASE("http: calls count for their owner after the client disconnects") {
  Running server(limits([](http::Limits& l) { l.calls_per_owner = 2; }), {{"alice", k_secret}, {"bob", k_bobs_secret}});
  const HttpHeaders session =
      with(with(plain_headers(), k_alice), {"Mcp-Session-Id: " + server.initialize(k_alice, "2025-11-25")});
  for (int i = 0; i < 2; ++i) {
    HttpConnection left = server.connect();
    left.send_request("POST", "/mcp", session, call_body("gate", json::object(), i));
    server.gate.wait_for_arrivals(i + 1);
  }
  HttpConnection waiting = server.connect();
  waiting.send_request("POST", "/mcp", session, call_body("echo", json::object(), 3));
  eventually("the call waits", [&] { return server.scheduler.load(Clock::now()).waiting == 1; });
  CHECK(text_of(server.post(with(stateless_headers("tools/call", "owner"), k_bob), call_body("owner"))) == "bob");
  server.gate.open();
  CHECK(field(waiting.receive().json(), "result", "isError") == false);
}

TEST_CASE("http: readiness is degraded while calls wait, and for a while after a rejection") {
  Running server(limits([](http::Limits& l) { l.calls_per_owner = 1; }), {}, {},
                 {.calls = 64, .waiting = 1, .rejection_memory = milliseconds(1000)});
  const auto ready = [&] {
    const HttpAnswer answer = server.connect().request("GET", "/readyz", {});
    CHECK(answer.status == 200);
    return answer.json();
  };
  const auto reason = [&] { return ready().value("reason", ""); };
  CHECK(field(ready(), "status") == "ok");
  std::vector<HttpConnection> calls;
  for (int i = 0; i < 2; ++i) {
    calls.push_back(server.connect());
    calls.back().send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
    server.gate.wait_for_arrivals(1);
  }
  eventually("the second call waits", [&] { return reason() == "1 call waits for capacity"; });
  CHECK(field(ready(), "status") == "degraded");
  CHECK(field(ready(), "waitingCalls") == 1);
  const HttpAnswer rejected = server.post(stateless_headers("tools/call", "echo"), call_body("echo"));
  CHECK(field(rejected.json(), "result", "structuredContent", "error", "code") == "too_many_calls");
  CHECK(field(rejected.json(), "result", "_meta", k_meta_result, "retryAfterSeconds").get<int>() > 0);
  CHECK(reason() == "1 call waits for capacity; calls were rejected for lack of capacity in the last 10 s");
  server.gate.open();
  for (HttpConnection& call : calls) {
    CHECK(call.receive().status == 200);
  }
  eventually("the rejection is forgotten", [&] { return field(ready(), "status") == "ok"; });
}

TEST_CASE("http: a client that leaves while its call waits has cancelled it") {
  Running server(limits([](http::Limits& l) { l.calls_per_owner = 1; }));
  HttpConnection running = server.connect();
  running.send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
  server.gate.wait_for_arrivals(1);
  {
    HttpConnection left = server.connect();
    left.send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
    eventually("it waits", [&] { return server.scheduler.load(Clock::now()).waiting == 1; });
  }
  eventually("it is removed", [&] { return server.scheduler.load(Clock::now()).waiting == 0; });
  server.gate.open();
  CHECK(running.receive().status == 200);
  CHECK(server.gate.arrived() == 1);
}

TEST_CASE("http: a waiting call reports its position as an event") {
  Running server(limits([](http::Limits& l) { l.calls_per_owner = 1; }), {}, {},
                 {.calls = 64, .first_report = milliseconds(0)});
  HttpConnection running = server.connect();
  running.send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
  server.gate.wait_for_arrivals(1);
  json meta = k_meta;
  meta["progressToken"] = 7;
  HttpConnection waiting = server.connect();
  waiting.send_request("POST", "/mcp", stateless_headers("tools/call", "echo"), call_body("echo", meta));
  CHECK(waiting.receive_head().status == 200);
  CHECK(field(next_message(waiting), "params", "message") == "waiting for capacity: next to start");
  server.gate.open();
  CHECK(next_message(waiting).contains("result"));
}

TEST_CASE("http: a server that stops answers a call that waits") {
  Running server(limits([](http::Limits& l) { l.calls_per_owner = 1; }));
  HttpConnection running = server.connect();
  running.send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
  server.gate.wait_for_arrivals(1);
  HttpConnection waiting = server.connect();
  waiting.send_request("POST", "/mcp", stateless_headers("tools/call", "echo"), call_body("echo"));
  eventually("it waits", [&] { return server.scheduler.load(Clock::now()).waiting == 1; });
  server.http->stop();
  CHECK(field(waiting.receive().json(), "result", "structuredContent", "error", "code") == "server_stopping");
}

TEST_CASE("http: a message of many small values is refused before memory is allocated") {
  const Running server;
  for (const char* value : {"[]", "{}", "[0]", R"({"":0})", R"("")"}) {
    CAPTURE(value);
    const HttpAnswer refused = server.post(stateless_headers("tools/call", "echo"), call_with_values(value, 8'000'000));
    CHECK(refused.status == 413);
    CHECK(field(refused.json(), "error", "code") == k_invalid_request);
  }
  CHECK(server.post(stateless_headers("tools/call", "echo"), call_with_values("[]", 300'000)).status == 200);
}

TEST_CASE("http: the values of a message count, not only its text") {
  // Room for two messages of 100 KB text each.
  Running server(limits([](http::Limits& l) {
    l.body_bytes = 100'000;
    l.bodies_bytes = 0;
  }));
  const HttpAnswer refused = server.post(stateless_headers("tools/call", "echo"), call_with_values("[]", 90'000));
  CHECK(refused.status == 503);
  CHECK(refused.header("Retry-After") == "1");
  CHECK(server.post(stateless_headers("tools/call", "echo"), call_with_values("[]", 1'000)).status == 200);
}

TEST_CASE("http: the largest message of one text is accepted") {
  const Running server(limits([](http::Limits& l) { l.bodies_bytes = 0; }));
  json meta = k_meta;
  meta["padding"] = "";
  const std::size_t most = http::Limits().body_bytes;
  meta["padding"] = std::string(most - call_body("owner", meta).size(), 'x');
  const std::string largest = call_body("owner", meta);
  REQUIRE(largest.size() == most);
  CHECK(text_of(server.post(stateless_headers("tools/call", "owner"), largest)) == "local");
}

TEST_CASE("http: the size of client capabilities is limited") {
  const Running server;
  const auto accepts = [&](std::size_t bytes) {
    const json capabilities = {{"experimental", {{"x", std::string(bytes, 'x')}}}};
    const HttpAnswer answer = server.post(
        plain_headers(), body("initialize", {{"protocolVersion", "2025-11-25"}, {"capabilities", capabilities}}));
    return answer.json().contains("result");
  };
  CHECK(accepts(10'000));
  CHECK_FALSE(accepts(100'000));
  json meta = k_meta;
  meta[k_meta_capabilities] = {{"experimental", std::string(100'000, 'x')}};
  CHECK(server.post(stateless_headers("tools/call", "owner"), call_body("owner", meta)).status == 400);
}
