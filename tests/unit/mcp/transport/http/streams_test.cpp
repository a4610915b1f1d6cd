// Long calls: events, keep-alive comments, and calls whose client closes the connection.

#include <doctest/doctest.h>

#include "support/field.hpp"
#include "unit/mcp/transport/http/running.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::field;

TEST_CASE("http: progress is sent as events, and the answer is the last of them") {
  Running server;
  HttpConnection connection = server.connect();
  json meta = k_meta;
  meta["progressToken"] = "t";
  connection.send_request("POST", "/mcp", stateless_headers("tools/call", "progress"), call_body("progress", meta));
  const HttpAnswer head = connection.receive_head();
  CHECK(head.status == 200);
  CHECK(head.header("Content-Type") == "text/event-stream");
  CHECK(head.header("X-Accel-Buffering") == "no");
  CHECK(connection.next_event() == "");
  CHECK(field(next_message(connection), "method") == "notifications/progress");
  server.gate.open();
  CHECK(field(next_message(connection), "result", "content", 0, "text") == "through");
  CHECK_FALSE(connection.next_event());
  CHECK(connection.event_id().empty());
}

TEST_CASE("http: a client that does not accept events gets the answer as JSON") {
  Running server;
  server.gate.open();
  json meta = k_meta;
  meta["progressToken"] = "t";
  const HttpAnswer answer =
      server.post({"Content-Type: application/json", "Accept: application/json", "MCP-Protocol-Version: 2026-07-28",
                   "Mcp-Method: tools/call", "Mcp-Name: progress"},
                  call_body("progress", meta));
  CHECK(answer.header("Content-Type") == "application/json");
  CHECK(text_of(answer) == "through");
}

TEST_CASE("http: a silent call becomes a stream with keep-alive comments") {
  Running server(limits([](http::Limits& l) { l.keep_alive = milliseconds(20); }));
  HttpConnection connection = server.connect();
  connection.send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
  CHECK(connection.receive_head().header("Content-Type") == "text/event-stream");
  for (int i = 0; i < 3; ++i) {
    CHECK(connection.next_event() == "");
  }
  server.gate.open();
  std::string last;
  while (const auto event = connection.next_event()) {
    last = *event;
  }
  CHECK(field(json::parse(last), "result", "content", 0, "text") == "through");
}

TEST_CASE("http: closing the connection cancels a stateless call") {
  for (const bool as_events : {false, true}) {
    Running server;
    HttpConnection connection = server.connect();
    json meta = k_meta;
    meta["progressToken"] = 1;
    connection.send_request("POST", "/mcp", stateless_headers("tools/call", as_events ? "progress" : "gate"),
                            call_body(as_events ? "progress" : "gate", meta));
    server.gate.wait_for_arrivals(1);
    connection.close();
    CHECK(server.gate.wait_for_end() == StopReason::cancelled);
  }
}

TEST_CASE("http: closing the connection does not cancel a call of a session") {
  Running server;
  const std::string id = server.initialize();
  const HttpHeaders session = with(plain_headers(), {"Mcp-Session-Id: " + id});
  HttpConnection connection = server.connect();
  connection.send_request("POST", "/mcp", session, body("tools/call", {{"name", "gate"}}));
  server.gate.wait_for_arrivals(1);
  connection.close();
  CHECK(server.post(session, body("ping", json::object(), 2)).status == 200);
  server.gate.open();
  CHECK(server.gate.wait_for_end() == StopReason::none);
}

TEST_CASE("http: a cancelled call of a session sends no more messages") {
  Running server;
  const std::string id = server.initialize();
  const HttpHeaders session = with(plain_headers(), {"Mcp-Session-Id: " + id});
  HttpConnection connection = server.connect();
  connection.send_request("POST", "/mcp", session, body("tools/call", {{"name", "gate"}}, 7));
  server.gate.wait_for_arrivals(1);
  CHECK(server.post(session, notification_message("notifications/cancelled", {{"requestId", 7}}).dump()).status == 202);
  CHECK(connection.receive().body.empty());
  CHECK(server.gate.wait_for_end() == StopReason::cancelled);
}

TEST_CASE("http: a client of a session resumes a lost stream") {
  Running server;
  const std::string id = server.initialize();
  const HttpHeaders session = with(plain_headers(), {"Mcp-Session-Id: " + id});
  HttpConnection first = server.connect();
  first.send_request("POST", "/mcp", session, body("tools/call", {{"name", "hang up"}}));
  CHECK(first.receive_head().status == 200);
  CHECK(first.next_event() == "");
  const std::string last = first.event_id();
  CHECK_FALSE(last.empty());
  CHECK_FALSE(first.next_event());

  HttpConnection second = server.connect();
  second.send_request("GET", "/mcp", with(session, {"Last-Event-ID: " + last}));
  CHECK(second.receive_head().status == 200);
  CHECK(second.next_event() == "");
  server.gate.open();
  CHECK(field(next_message(second), "result", "content", 0, "text") == "through");
  CHECK_FALSE(second.next_event());
}

TEST_CASE("http: a result is delivered when its response was written, as JSON or as events") {
  for (const bool as_events : {false, true}) {
    Running server;
    HttpConnection connection = server.connect();
    json meta = k_meta;
    meta["progressToken"] = 1;
    const std::string tool = as_events ? "progress" : "gate";
    connection.send_request("POST", "/mcp", stateless_headers("tools/call", tool), call_body(tool, meta));
    server.gate.wait_for_arrivals(1);
    CHECK(server.deliveries.so_far() == 0);
    server.gate.open();
    CHECK(connection.receive_head().status == 200);
    CHECK(server.deliveries.settled() == 1);
  }
}

TEST_CASE("http: a result is not delivered to a client that left before the response") {
  for (const bool stateless : {true, false}) {
    Running server;
    HttpConnection connection = server.connect();
    HttpHeaders headers = stateless_headers("tools/call", "gate");
    if (!stateless) {
      headers = with(plain_headers(), {"Mcp-Session-Id: " + server.initialize()});
    }
    connection.send_request("POST", "/mcp", headers,
                            stateless ? call_body("gate") : body("tools/call", {{"name", "gate"}}));
    server.gate.wait_for_arrivals(1);
    connection.close();
    if (stateless) {
      CHECK(server.deliveries.settled() == 0);  // the call was cancelled
    }
    server.gate.open();
    CHECK(server.gate.wait_for_end() == (stateless ? StopReason::cancelled : StopReason::none));
    CHECK(server.deliveries.settled() == 0);  // the callback is dropped at once, not with the session
  }
}

TEST_CASE("http: a stored event counts as delivered after the client has resumed") {
  Running server;
  const HttpHeaders session = with(plain_headers(), {"Mcp-Session-Id: " + server.initialize()});
  HttpConnection first = server.connect();
  first.send_request("POST", "/mcp", session, body("tools/call", {{"name", "hang up"}}));
  CHECK(first.receive_head().status == 200);
  CHECK(first.next_event() == "");
  const std::string last = first.event_id();
  CHECK_FALSE(first.next_event());
  server.gate.open();
  server.scheduler.wait_until_idle(Deadline::after(k_patience));
  CHECK(server.deliveries.so_far() == 0);

  HttpConnection second = server.connect();
  second.send_request("GET", "/mcp", with(session, {"Last-Event-ID: " + last}));
  CHECK(second.receive_head().status == 200);
  CHECK(field(next_message(second), "result", "content", 0, "text") == "through");
  CHECK(server.deliveries.settled() == 1);
}

TEST_CASE("http: 200 open streams, and a request is still answered") {
  Running server;
  const std::string listen = body("subscriptions/listen", {{"_meta", k_meta}, {"notifications", json::object()}});
  std::vector<HttpConnection> streams;
  for (int i = 0; i < 200; ++i) {
    streams.push_back(server.connect());
    streams.back().send_request("POST", "/mcp", stateless_headers("subscriptions/listen"), listen);
  }
  for (HttpConnection& stream : streams) {
    CHECK(stream.receive_head().status == 200);
    CHECK(stream.next_event() == "");
    CHECK(field(next_message(stream), "method") == "notifications/subscriptions/acknowledged");
  }
  CHECK(server.list().status == 200);
}

TEST_CASE("http: a stopping server ends subscriptions, and leaves work running") {
  Running server;
  HttpConnection listening = server.connect();
  listening.send_request("POST", "/mcp", stateless_headers("subscriptions/listen"),
                         body("subscriptions/listen", {{"_meta", k_meta}, {"notifications", json::object()}}));
  CHECK(listening.receive_head().status == 200);
  const std::string id = server.initialize();
  HttpConnection standing = server.connect();
  standing.send_request("GET", "/mcp", with(plain_headers(), {"Mcp-Session-Id: " + id}));
  CHECK(standing.receive_head().status == 200);
  HttpConnection calling = server.connect();
  calling.send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
  server.gate.wait_for_arrivals(1);
  CHECK(server.http->stop());
  CHECK(server.gate.wait_for_end() == StopReason::detached);
  CHECK(text_of(calling.receive()) == "through");
  std::string last;
  while (const auto event = listening.next_event()) {
    last = event->empty() ? last : *event;
  }
  CHECK(field(json::parse(last), "result", "_meta", k_meta_subscription) == 1);
  while (standing.next_event()) {
  }
}
