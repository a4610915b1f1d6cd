#include <doctest/doctest.h>
#include <httplib.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <set>

#include "mcp/transport/http/connection.hpp"
#include "mcp/transport/http/front.hpp"
#include "mcp/transport/http_server.hpp"
#include "support/http.hpp"
#include "support/program.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using test::HttpAnswer;
using test::HttpConnection;
using test::HttpHeaders;

namespace {

constexpr seconds k_patience{20};
const std::string k_secret = "0123456789abcdef-alice";
const std::string k_bobs_secret = "0123456789abcdef-bobby";

const json k_meta = {{k_meta_version, "2026-07-28"}, {k_meta_capabilities, json::object()}};

HttpHeaders plain_headers() {
  return {"Content-Type: application/json", "Accept: application/json, text/event-stream"};
}

HttpHeaders with(HttpHeaders headers, const HttpHeaders& more) {
  headers.insert(headers.end(), more.begin(), more.end());
  return headers;
}

HttpHeaders stateless_headers(const std::string& method, const std::string& name = "") {
  HttpHeaders headers = with(plain_headers(), {"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method});
  return name.empty() ? headers : with(headers, {"Mcp-Name: " + name});
}

std::string body(const std::string& method, json params, const json& id = 1) {
  return request_message(id, method, std::move(params)).dump();
}

std::string call_body(const std::string& tool, json meta = k_meta, const json& id = 1) {
  return body("tools/call", {{"name", tool}, {"_meta", std::move(meta)}}, id);
}

/// Waits in the tool until the test opens it or the call is interrupted; remembers how the last call ended.
class Gate {
 public:
  ToolResult pass(const CallContext& context) {
    std::unique_lock lock(m_mutex);
    ++m_arrived;
    m_changed.notify_all();
    m_changed.wait(lock, context.interruption.token(), [&] { return m_open; });
    m_reasons.push_back(context.interruption.reason());
    m_changed.notify_all();
    return {"through", nullptr};
  }
  void open() {
    const std::lock_guard lock(m_mutex);
    m_open = true;
    m_changed.notify_all();
  }
  void wait_for_arrivals(std::size_t count) {
    std::unique_lock lock(m_mutex);
    REQUIRE(m_changed.wait_for(lock, k_patience, [&] { return m_arrived >= count; }));
  }
  StopReason wait_for_end() {
    std::unique_lock lock(m_mutex);
    REQUIRE(m_changed.wait_for(lock, k_patience, [&] { return !m_reasons.empty(); }));
    return m_reasons.back();
  }

 private:
  std::mutex m_mutex;
  std::condition_variable_any m_changed;
  bool m_open = false;
  std::size_t m_arrived = 0;
  std::vector<StopReason> m_reasons;
};

Tool tool(const std::string& name, std::function<ToolResult(const json&, const CallContext&)> call) {
  Tool made;
  made.name = name;
  made.input_schema = {{"type", "object"}};
  made.call = std::move(call);
  return made;
}

/// A server with tools that do what tests need.
class Running {
 public:
  explicit Running(http::Limits limits = {}, std::vector<http::Token> tokens = {}, HttpSettings more = {})
      : server({"test", "Test", "1", ""}, {tools()}) {
    more.limits = limits;
    more.tokens = std::move(tokens);
    more.endpoint.port = "0";
    auto started = HttpServer::start(more, hub, pool);
    REQUIRE(started);
    http = std::move(*started);
  }
  ~Running() {
    gate.open();
    http->stop();
  }
  [[nodiscard]] int port() const { return http->port(); }
  HttpConnection connect() const { return HttpConnection(port()); }
  HttpAnswer post(const HttpHeaders& headers, const std::string& text) const {
    return connect().request("POST", "/mcp", headers, text);
  }
  HttpAnswer list(const HttpHeaders& more = {}) const {
    return post(with(stateless_headers("tools/list"), more), body("tools/list", {{"_meta", k_meta}}));
  }
  /// The id of a new session.
  std::string initialize(const HttpHeaders& more = {}, const std::string& version = "2025-11-25") const {
    const HttpAnswer answer =
        post(with(plain_headers(), more),
             body("initialize", {{"protocolVersion", version}, {"capabilities", json::object()}}));
    REQUIRE(answer.status == 200);
    return answer.header("Mcp-Session-Id");
  }

  Gate gate;
  std::vector<Tool> tools() {
    return {tool("echo",
                 [](const json& arguments, const CallContext&) {
                   return ToolResult{arguments.dump(), nullptr};
                 }),
            tool("owner",
                 [](const json&, const CallContext& context) {
                   return ToolResult{context.owner, nullptr};
                 }),
            tool("gate", [this](const json&, const CallContext& context) { return gate.pass(context); }),
            tool("progress",
                 [this](const json&, const CallContext& context) {
                   if (context.report_progress) {
                     context.report_progress("begun");
                   }
                   return gate.pass(context);
                 }),
            tool("hang up", [this](const json&, const CallContext& context) {
              context.hang_up();
              return gate.pass(context);
            })};
  }
  Log log{-1, LogLevel::off, LogFormat::text};
  Server server;
  Hub hub{server, log};
  WorkerPool pool{64};
  std::unique_ptr<HttpServer> http;
};

/// The next event's message; comments are passed over.
json next_message(HttpConnection& connection) {
  auto event = connection.next_event();
  while (event && event->empty()) {
    event = connection.next_event();
  }
  REQUIRE(event);
  return json::parse(*event);
}

std::string text_of(const HttpAnswer& answer) {
  return answer.json()["result"]["content"][0]["text"];
}

http::Limits limits(void (*change)(http::Limits&)) {
  http::Limits changed;
  change(changed);
  return changed;
}

}  // namespace

TEST_CASE("http: a stateless request is answered with JSON, many on one connection") {
  const Running server;
  HttpConnection connection = server.connect();
  for (int i = 0; i < 50; ++i) {
    const HttpAnswer answer =
        connection.request("POST", "/mcp", stateless_headers("tools/call", "echo"), call_body("echo", k_meta, i));
    REQUIRE(answer.status == 200);
    CHECK(answer.header("Content-Type") == "application/json");
    CHECK(answer.json()["id"] == i);
    CHECK(text_of(answer) == "{}");
  }
}

TEST_CASE("http: headers that do not say what the body says are refused") {
  const Running server;
  const auto code = [&](const HttpHeaders& headers, const std::string& text) {
    const HttpAnswer answer = server.post(headers, text);
    CHECK(answer.status == 400);
    CHECK(answer.json()["id"] == 1);
    return answer.json()["error"]["code"].get<int>();
  };
  const std::string list = body("tools/list", {{"_meta", k_meta}});
  CHECK(code(with(plain_headers(), {"MCP-Protocol-Version: 2026-07-28"}), list) == k_header_mismatch);
  CHECK(code(with(plain_headers(), {"Mcp-Method: tools/list"}), list) == k_header_mismatch);
  CHECK(code(stateless_headers("tools/call"), list) == k_header_mismatch);
  CHECK(code(stateless_headers("tools/call", "other"), call_body("echo")) == k_header_mismatch);
  CHECK(code(stateless_headers("tools/call"), call_body("echo")) == k_header_mismatch);
  CHECK(code(stateless_headers("tools/list"), body("tools/list", json::object())) == k_invalid_params);
  CHECK(code(stateless_headers("initialize"), body("initialize", json::object())) == k_header_mismatch);
  const json no_capabilities = {{k_meta_version, "2026-07-28"}};
  CHECK(code(stateless_headers("tools/list"), body("tools/list", {{"_meta", no_capabilities}})) == k_invalid_params);
  const json future = {{k_meta_version, "2031-01-01"}, {k_meta_capabilities, json::object()}};
  CHECK(code(with(plain_headers(), {"MCP-Protocol-Version: 2031-01-01", "Mcp-Method: tools/list"}),
             body("tools/list", {{"_meta", future}})) == k_unsupported_version);
}

TEST_CASE("http: a name may come encoded, and an unknown method is 404") {
  const Running server;
  CHECK(server.post(stateless_headers("tools/call", "=?base64?ZWNobw==?="), call_body("echo")).status == 200);
  const HttpAnswer unknown = server.post(stateless_headers("no/such"), body("no/such", {{"_meta", k_meta}}));
  CHECK(unknown.status == 404);
  CHECK(unknown.json()["error"]["code"] == k_method_not_found);
}

TEST_CASE("http: a session begins with initialize and ends with DELETE") {
  const Running server;
  const std::string id = server.initialize();
  REQUIRE(id.size() == 32);
  const HttpHeaders session = with(plain_headers(), {"Mcp-Session-Id: " + id});
  CHECK(server.post(session, notification_message("notifications/initialized", json::object()).dump()).status == 202);
  CHECK(server.post(session, body("ping", json::object())).json()["result"] == json::object());
  CHECK(server.post(plain_headers(), body("ping", json::object())).status == 400);
  CHECK(server.post(with(plain_headers(), {"Mcp-Session-Id: 00"}), body("ping", json::object())).status == 404);
  CHECK(server.connect().request("DELETE", "/mcp", session).status == 204);
  CHECK(server.post(session, body("ping", json::object())).status == 404);
  CHECK(server.connect().request("DELETE", "/mcp", session).status == 404);
}

TEST_CASE("http: batches are for the revision that has them") {
  const Running server;
  const std::string batch =
      json::array({request_message(1, "ping", json::object()), request_message(2, "ping", json::object())}).dump();
  const std::string old = server.initialize({}, "2025-03-26");
  CHECK(server.post(with(plain_headers(), {"Mcp-Session-Id: " + old}), batch).json().size() == 2);
  const std::string newer = server.initialize();
  CHECK(server.post(with(plain_headers(), {"Mcp-Session-Id: " + newer}), batch).json()["error"]["code"] ==
        k_invalid_request);
}

TEST_CASE("http: there are so many sessions and no more") {
  const Running server(limits([](http::Limits& l) { l.sessions = 2; }));
  server.initialize();
  server.initialize();
  const HttpAnswer refused = server.post(plain_headers(), body("initialize", {{"protocolVersion", "2025-11-25"}}));
  CHECK(refused.status == 503);
  CHECK_FALSE(refused.header("Retry-After").empty());
}

TEST_CASE("http: a session without use is forgotten") {
  const Running server(limits([](http::Limits& l) { l.session_idle = milliseconds(1); }));
  const std::string id = server.initialize();
  test::eventually("the session is forgotten", [&] {
    return server.post(with(plain_headers(), {"Mcp-Session-Id: " + id}), body("ping", json::object())).status == 404;
  });
}

TEST_CASE("http: without the right token nobody gets in") {
  const Running server({}, {{"alice", k_secret}});
  const HttpAnswer without = server.list();
  CHECK(without.status == 401);
  CHECK(without.header("WWW-Authenticate") == "Bearer");
  CHECK(server.list({"Authorization: Bearer 0123456789abcdef-wrong"}).status == 401);
  CHECK(server.list({"Authorization: Basic " + k_secret}).status == 401);
  CHECK(server.list({"Authorization: bearer " + k_secret}).status == 200);
}

TEST_CASE("http: wrong tokens are throttled by the real address, whatever the client says it is") {
  const Running server({}, {{"alice", k_secret}});
  for (int i = 0; i < 10; ++i) {
    CHECK(server.list({"REMOTE_ADDR: 10.0.0." + std::to_string(i), "Authorization: Bearer 0123456789abcdef-wrong"})
              .status == 401);
  }
  const HttpAnswer throttled = server.list({"REMOTE_ADDR: 10.0.0.99", "Authorization: Bearer " + k_secret});
  CHECK(throttled.status == 429);
  CHECK_FALSE(throttled.header("Retry-After").empty());
}

TEST_CASE("http: a token has its tools and its sessions, and nobody else's") {
  const Running server({}, {{"alice", k_secret}, {"bob", k_bobs_secret, std::set<std::string>{"owner"}}});
  const HttpHeaders alice = {"Authorization: Bearer " + k_secret};
  const HttpHeaders bob = {"Authorization: Bearer " + k_bobs_secret};
  CHECK(server.list(alice).json()["result"]["tools"].size() == 5);
  CHECK(server.list(bob).json()["result"]["tools"].size() == 1);
  CHECK(text_of(server.post(with(stateless_headers("tools/call", "owner"), bob), call_body("owner"))) == "bob");
  CHECK(server.post(with(stateless_headers("tools/call", "echo"), bob), call_body("echo")).json()["error"]["code"] ==
        k_invalid_params);
  const std::string session = server.initialize(alice);
  const HttpHeaders in_session = with(plain_headers(), {"Mcp-Session-Id: " + session});
  CHECK(server.post(with(in_session, alice), body("ping", json::object())).status == 200);
  CHECK(server.post(with(in_session, bob), body("ping", json::object())).status == 404);
  CHECK(server.connect().request("DELETE", "/mcp", with(in_session, bob)).status == 404);
}

TEST_CASE("http: other hosts and other pages are refused") {
  HttpSettings settings;
  settings.hosts = {"box.example"};
  settings.origins = {"https://app.example"};
  const Running server({}, {}, settings);
  for (const char* good : {"localhost", "127.0.0.1:80", "[::1]:80", "BOX.example:443"}) {
    CHECK(server.list({std::string("Host: ") + good}).status == 200);
  }
  for (const char* bad : {"evil.example", "localhost.evil.example", ""}) {
    CHECK(server.list({std::string("Host: ") + bad}).status == 403);
  }
  for (const char* good : {"http://localhost:3000", "https://127.0.0.1", "https://app.example"}) {
    CHECK(server.list({std::string("Origin: ") + good}).status == 200);
  }
  for (const char* bad : {"http://evil.example", "null", "https://app.example.evil", "http://localhost.evil.example"}) {
    CHECK(server.list({std::string("Origin: ") + bad}).status == 403);
  }
}

TEST_CASE("http: what the library would let through is refused") {
  const Running server(limits([](http::Limits& l) {
    l.body_bytes = 1000;
    l.header_bytes = 2000;
  }));
  SUBCASE("a body in chunks") {
    HttpConnection connection = server.connect();
    connection.send(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
    CHECK(connection.receive().status == 411);
    CHECK(connection.ended());
  }
  SUBCASE("a compressed body") {
    CHECK(server.list({"Content-Encoding: gzip"}).status == 415);
  }
  SUBCASE("no length, or a strange one") {
    for (const char* length : {"", "Content-Length: x\r\n", "Content-Length: -1\r\n", "Content-Length: \r\n",
                               "Content-Length: 2\r\nContent-Length: 3\r\n"}) {
      HttpConnection connection = server.connect();
      connection.send(std::string("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n") +
                      length + "\r\n{}");
      CHECK(connection.receive().status == 411);
    }
  }
  SUBCASE("a large body, before it is sent") {
    HttpConnection connection = server.connect();
    connection.send(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 1001\r\n\r\n");
    CHECK(connection.receive().status == 413);
    CHECK(connection.ended());
  }
  SUBCASE("an endless header") {
    HttpConnection connection = server.connect();
    connection.send("GET /mcp HTTP/1.1\r\nX: ");
    connection.send(std::string(3000, 'x'));
    CHECK(connection.receive().status == 431);
    CHECK(connection.ended());
  }
  SUBCASE("an endless request line") {
    HttpConnection connection = server.connect();
    connection.send("GET /" + std::string(3000, 'x'));
    CHECK(connection.receive().status == 431);
  }
}

TEST_CASE("http: a head or a body that does not come in time is given up") {
  const Running server(limits([](http::Limits& l) {
    l.header_time = milliseconds(50);
    l.body_time = milliseconds(50);
  }));
  HttpConnection head = server.connect();
  head.send("POST /mcp HTTP/1.1\r\nHost: local");
  CHECK(head.receive().status == 408);
  HttpConnection late_body = server.connect();
  late_body.send(
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{");
  CHECK(late_body.receive().status == 408);
  CHECK(server.list().status == 200);
}

TEST_CASE("http: beyond the connections there may be, a client is told to come back") {
  const Running server(limits([](http::Limits& l) { l.connections = 2; }));
  HttpConnection one = server.connect();
  HttpConnection two = server.connect();
  CHECK(one.request("GET", "/healthz", {}).status == 200);
  CHECK(two.request("GET", "/healthz", {}).status == 200);
  HttpConnection three = server.connect();
  const HttpAnswer refused = three.receive();
  CHECK(refused.status == 503);
  CHECK(refused.header("Retry-After") == "1");
  CHECK(one.request("GET", "/healthz", {}).status == 200);
}

TEST_CASE("http: when the bodies of all clients together are too large, the next is told to come back") {
  const Running server(limits([](http::Limits& l) { l.bodies_bytes = 1000; }));
  HttpConnection slow = server.connect();
  slow.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{");
  HttpAnswer refused;
  test::eventually("the first body is being read", [&] {
    refused = server.list();
    return refused.status != 200;
  });
  CHECK(refused.status == 503);
  CHECK(refused.header("Retry-After") == "1");
  slow.close();
  test::eventually("there is room again", [&] { return server.list().status == 200; });
}

TEST_CASE("http: an owner has so many requests at a time and so many a second; others do not suffer") {
  Running server(limits([](http::Limits& l) { l.requests_per_owner = 1; }),
                 {{"alice", k_secret}, {"bob", k_bobs_secret}});
  const HttpHeaders alice = {"Authorization: Bearer " + k_secret};
  HttpConnection busy = server.connect();
  busy.send_request("POST", "/mcp", with(stateless_headers("tools/call", "gate"), alice), call_body("gate"));
  server.gate.wait_for_arrivals(1);
  const HttpAnswer refused = server.list(alice);
  CHECK(refused.status == 429);
  CHECK(refused.header("Retry-After") == "1");
  CHECK(server.list({"Authorization: Bearer " + k_bobs_secret}).status == 200);
  server.gate.open();
  CHECK(busy.receive().status == 200);

  const Running slow(limits([](http::Limits& l) { l.rate_per_owner = 1; }));
  CHECK(slow.list().status == 200);
  CHECK(slow.list().status == 429);
}

TEST_CASE("http: progress comes as events, and the answer is the last of them") {
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
  CHECK(next_message(connection)["method"] == "notifications/progress");
  server.gate.open();
  CHECK(next_message(connection)["result"]["content"][0]["text"] == "through");
  CHECK_FALSE(connection.next_event());
  CHECK(connection.event_id().empty());
}

TEST_CASE("http: a client that takes no events gets the answer as JSON") {
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

TEST_CASE("http: a quiet call becomes a stream that shows signs of life") {
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
  CHECK(json::parse(last)["result"]["content"][0]["text"] == "through");
}

TEST_CASE("http: who leaves a stateless call has cancelled it, as JSON or as events") {
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

TEST_CASE("http: who leaves a call of a session has not") {
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

TEST_CASE("http: a call of a session is cancelled by a notification, and then nothing more comes") {
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

TEST_CASE("http: a client of a session that lost its stream comes back for the rest") {
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
  CHECK(next_message(second)["result"]["content"][0]["text"] == "through");
  CHECK_FALSE(second.next_event());
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
    CHECK(next_message(stream)["method"] == "notifications/subscriptions/acknowledged");
  }
  CHECK(server.list().status == 200);
}

TEST_CASE("http: an owner has so many streams") {
  const Running server(limits([](http::Limits& l) { l.streams_per_owner = 1; }));
  const std::string listen = body("subscriptions/listen", {{"_meta", k_meta}, {"notifications", json::object()}});
  HttpConnection first = server.connect();
  first.send_request("POST", "/mcp", stateless_headers("subscriptions/listen"), listen);
  CHECK(first.receive_head().status == 200);
  CHECK(server.post(stateless_headers("subscriptions/listen"), listen).status == 429);
}

TEST_CASE("http: at its end a server tells those who listen, and leaves calls to go on") {
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
  CHECK(json::parse(last)["result"]["_meta"][k_meta_subscription] == 1);
  while (standing.next_event()) {
  }
}

TEST_CASE("http: what escapes a handler is not told to the client") {
  const Log log{-1, LogLevel::off, LogFormat::text};
  Metrics metrics;
  http::Listener listener(
      {}, {}, [](http::Request&) -> http::Response { throw std::runtime_error("a secret"); }, metrics,
      const_cast<Log&>(log));
  REQUIRE(listener.start({"127.0.0.1", "0"}, [] {}));
  HttpConnection connection(listener.port());
  const HttpAnswer answer = connection.request("GET", "/", {});
  CHECK(answer.status == 500);
  CHECK((answer.head + answer.body).find("secret") == std::string::npos);
}

TEST_CASE("http: other paths and methods") {
  const Running server;
  CHECK(server.connect().request("GET", "/nothing", {}).status == 404);
  CHECK(server.connect().request("PUT", "/mcp", {}).status == 405);
  CHECK(server.connect().request("OPTIONS", "/mcp", {}).header("Access-Control-Allow-Origin").empty());
  CHECK(server.connect().request("GET", "/mcp", stateless_headers("x")).status == 405);
  CHECK(server.post({"Content-Type: text/plain"}, "{}").status == 415);
  CHECK(server.post({"Content-Type: application/json", "Accept: text/html"}, "{}").status == 406);
  CHECK(server.post(plain_headers(), "{").status == 400);
}

TEST_CASE("http: health and metrics") {
  const Running server;
  CHECK(server.connect().request("GET", "/healthz", {}).json()["status"] == "ok");
  CHECK(server.connect().request("GET", "/readyz", {}).status == 200);
  server.post(stateless_headers("tools/call", "echo"), call_body("echo"));
  const std::string metrics = server.connect().request("GET", "/metrics", {}).body;
  CHECK(metrics.find("dockbridge_calls_total{tool=\"echo\",outcome=\"ok\"} 1\n") != std::string::npos);
  CHECK(metrics.find("dockbridge_call_seconds_count{tool=\"echo\"} 1\n") != std::string::npos);
}

TEST_CASE("http: from another machine health and metrics need a token, whatever the client says where it is") {
  Log log{-1, LogLevel::off, LogFormat::text};
  const Server server({"test", "Test", "1", ""}, {});
  Hub hub(server, log);
  WorkerPool pool(1);
  http::Access access({{"alice", k_secret}});
  http::Front front(hub, pool, {}, access, http::Origins({}, {}), {});
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  http::Socket socket(Fd(ends[0]), "10.0.0.1");
  const Fd unused(ends[1]);
  http::Client client(socket, std::make_shared<Wakeup>());
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) {
    CAPTURE(path);
    http::Request request{"GET", path, {{"Host", "localhost"}, {"X-Forwarded-For", "127.0.0.1"}}, client, {}};
    CHECK(front.handle(request).status == 401);
    request.headers.emplace_back("Authorization", "Bearer " + k_secret);
    CHECK(front.handle(request).status == 200);
  }
}

TEST_CASE("http: beyond this machine nobody is served without a token") {
  Log log{-1, LogLevel::off, LogFormat::text};
  const Server server({"test", "Test", "1", ""}, {});
  Hub hub(server, log);
  WorkerPool pool(1);
  HttpSettings settings;
  settings.endpoint = {"0.0.0.0", "0"};
  const auto started = HttpServer::start(settings, hub, pool);
  REQUIRE_FALSE(started);
  CHECK(started.error().code == "no_token");
}

TEST_CASE("http: with a certificate it is HTTPS") {
  const test::TemporaryDirectory directory;
  const std::string key = (directory / "key.pem").string();
  const std::string certificate = (directory / "cert.pem").string();
  test::run_ok({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                "-subj", "/CN=localhost", "-days", "1"});
  HttpSettings settings;
  settings.tls_certificate = certificate;
  settings.tls_key = key;
  Running server({}, {}, settings);
  httplib::SSLClient client("localhost", server.port());
  client.set_ca_cert_path(certificate.c_str());
  client.enable_server_certificate_verification(true);
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.Get("/healthz");
    REQUIRE(answer);
    CHECK(answer->status == 200);
  }
  HttpConnection plain = server.connect();
  plain.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(plain.receive().status == 0);
  settings.tls_key = certificate;
  settings.endpoint.port = "0";
  CHECK_FALSE(HttpServer::start(settings, server.hub, server.pool));
}
