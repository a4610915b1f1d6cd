// Refused clients and exceeded limits.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <set>

#include "mcp/transport/http/front.hpp"
#include "support/field.hpp"
#include "support/program.hpp"
#include "unit/mcp/transport/http/running.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::eventually;
using dockbridge::test::field;

namespace {

/// A call of the maximum body size in these tests.
std::string large_call(const std::string& tool, json meta = k_meta) {
  meta["padding"] = std::string(120'000, 'x');
  return call_body(tool, meta);
}

/// Room for two large calls, one of each owner.
http::Limits small_bodies() {
  return limits([](http::Limits& l) {
    l.body_bytes = large_call("gate").size();
    l.bodies_bytes = 0;
  });
}

/// 0 if absent.
int metric(const Running& server, const std::string& name) {
  const std::string text = server.hub.metrics.text();
  const std::size_t found = text.find("\n" + name + " ");
  return found == std::string::npos ? 0 : std::stoi(text.substr(found + name.size() + 2));
}

}  // namespace

TEST_CASE("http: a request without the right token is refused") {
  const Running server({}, {{"alice", k_secret}});
  const HttpAnswer without = server.list();
  CHECK(without.status == 401);
  CHECK(without.header("WWW-Authenticate") == "Bearer");
  CHECK(server.list({"Authorization: Bearer 0123456789abcdef-wrong"}).status == 401);
  CHECK(server.list({"Authorization: Basic " + k_secret}).status == 401);
  CHECK(server.list({"Authorization: bearer " + k_secret}).status == 200);
}

TEST_CASE("http: wrong tokens are throttled by the peer's address, not by headers") {
  const Running server({}, {{"alice", k_secret}});
  for (int i = 0; i < 10; ++i) {
    CHECK(server.list({"REMOTE_ADDR: 10.0.0." + std::to_string(i), "Authorization: Bearer 0123456789abcdef-wrong"})
              .status == 401);
  }
  const HttpAnswer throttled = server.list({"REMOTE_ADDR: 10.0.0.99", "Authorization: Bearer 0123456789abcdef-wrong"});
  CHECK(throttled.status == 429);
  CHECK_FALSE(throttled.header("Retry-After").empty());
  CHECK(server.list({"Authorization: Bearer " + k_secret}).status == 200);
}

TEST_CASE("http: a token gives access only to its own tools and sessions") {
  const Running server({}, {{"alice", k_secret}, {"bob", k_bobs_secret, std::set<std::string>{"owner"}}});
  const HttpHeaders alice = {"Authorization: Bearer " + k_secret};
  const HttpHeaders bob = {"Authorization: Bearer " + k_bobs_secret};
  CHECK(field(server.list(alice).json(), "result", "tools").size() == 5);
  CHECK(field(server.list(bob).json(), "result", "tools").size() == 1);
  CHECK(text_of(server.post(with(stateless_headers("tools/call", "owner"), bob), call_body("owner"))) == "bob");
  CHECK(field(server.post(with(stateless_headers("tools/call", "echo"), bob), call_body("echo")).json(), "error",
              "code") == k_invalid_params);
  const std::string session = server.initialize(alice);
  const HttpHeaders in_session = with(plain_headers(), {"Mcp-Session-Id: " + session});
  CHECK(server.post(with(in_session, alice), body("ping", json::object())).status == 200);
  CHECK(server.post(with(in_session, bob), body("ping", json::object())).status == 404);
  CHECK(server.connect().request("DELETE", "/mcp", with(in_session, bob)).status == 404);
}

TEST_CASE("http: unknown hosts and origins are refused") {
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

TEST_CASE("http: malformed requests that the library accepts are refused") {
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
  SUBCASE("a length beyond all numbers") {
    HttpConnection connection = server.connect();
    connection.send(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 99999999999999999999999\r\n\r\n{}");
    CHECK(connection.receive().status == 413);
    CHECK(connection.ended());
  }
  SUBCASE("an endless request line") {
    HttpConnection connection = server.connect();
    connection.send("GET /" + std::string(3000, 'x'));
    CHECK(connection.receive().status == 431);
  }
}

TEST_CASE("http: bytes after an unreadable request are not parsed as a request") {
  const Running server;
  const std::string hidden =
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
      "Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: " +
      std::to_string(call_body("echo").size()) + "\r\n\r\n" + call_body("echo");
  const std::string rest =
      "Host: localhost\r\nOrigin: http://evil.example\r\nContent-Length: " + std::to_string(hidden.size()) +
      "\r\n\r\n" + hidden;
  for (const auto& [begin, status] :
       {std::pair("POST /" + std::string(9000, 'x') + " HTTP/1.1\r\n", 414),
        std::pair(std::string("POST /mcp HTTP/1.1\r\nRange: bytes=x\r\n"), 416),
        std::pair(std::string("P{}T /mcp HTTP/1.1\r\n"), 400), std::pair(std::string("POST /mcp HTTP/9.9\r\n"), 400),
        std::pair(std::string("POST /mcp HTTP/1.1\r\nTransfer-Encoding : chunked\r\n"), 400),
        std::pair(std::string("POST /mcp HTTP/1.1\r\nX: 1\r\n Transfer-Encoding: chunked\r\n"), 400),
        std::pair(std::string("POST /mcp HTTP/1.1\r\nX: 1\nTransfer-Encoding: chunked\r\n"), 400),
        std::pair(std::string("POST /mcp HTTP/1.1\nTransfer-Encoding: chunked\r\n"), 400),
        std::pair(std::string("POST /mcp HTTP/1.1\r\nTransfer-Encoding\r\n"), 400),
        std::pair(std::string("POST /mcp HTTP/1.1\r\n: chunked\r\n"), 400)}) {
    CAPTURE(begin);
    const int before = metric(server, fmt::format("dockbridge_refusals_total{{reason=\"{}\"}}", status));
    HttpConnection connection = server.connect();
    connection.send(begin + rest);
    const HttpAnswer answer = connection.receive();
    CHECK(answer.status == status);
    CHECK(answer.header("Connection") == "close");
    CHECK(connection.receive().status == 0);
    CHECK(metric(server, fmt::format("dockbridge_refusals_total{{reason=\"{}\"}}", status)) == before + 1);
  }
}

TEST_CASE("http: a head or body that is late closes the connection") {
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

TEST_CASE("http: a new connection gets 503 with Retry-After while all are busy") {
  Running server(limits([](http::Limits& l) { l.connections = 2; }));
  HttpConnection one = server.connect();
  HttpConnection two = server.connect();
  for (HttpConnection* connection : {&one, &two}) {
    connection->send_request("POST", "/mcp", stateless_headers("tools/call", "gate"), call_body("gate"));
  }
  server.gate.wait_for_arrivals(2);
  HttpConnection three = server.connect();
  const HttpAnswer refused = three.receive();
  CHECK(refused.status == 503);
  CHECK(refused.header("Retry-After") == "1");
  server.gate.open();
  CHECK(one.receive().status == 200);
}

TEST_CASE("http: an owner over its body budget gets 503 with Retry-After") {
  Running server(small_bodies(), {{"alice", k_secret}, {"bob", k_bobs_secret}});
  const HttpHeaders alice = {"Authorization: Bearer " + k_secret};
  const HttpHeaders bob = {"Authorization: Bearer " + k_bobs_secret};
  HttpConnection busy = server.connect();
  busy.send_request("POST", "/mcp", with(stateless_headers("tools/call", "gate"), alice), large_call("gate"));
  server.gate.wait_for_arrivals(1);
  const HttpAnswer refused = server.post(with(stateless_headers("tools/call", "echo"), alice), large_call("echo"));
  CHECK(refused.status == 503);
  CHECK(refused.header("Retry-After") == "1");
  CHECK(server.post(with(stateless_headers("tools/call", "echo"), alice), call_body("echo")).status == 200);
  CHECK(server.post(with(stateless_headers("tools/call", "echo"), bob), large_call("echo")).status == 200);
  server.gate.open();
  CHECK(busy.receive().status == 200);
  eventually("there is room again", [&] {
    return server.post(with(stateless_headers("tools/call", "echo"), alice), large_call("echo")).status == 200;
  });
}

TEST_CASE("http: over the total body budget a large request gets 503 with Retry-After") {
  const std::string k_carols_secret = "0123456789abcdef-carol";
  Running server(small_bodies(), {{"alice", k_secret}, {"bob", k_bobs_secret}, {"carol", k_carols_secret}});
  const auto headers = [](const std::string& secret, const std::string& tool) {
    return with(stateless_headers("tools/call", tool), {"Authorization: Bearer " + secret});
  };
  HttpConnection alice = server.connect();
  alice.send_request("POST", "/mcp", headers(k_secret, "gate"), large_call("gate"));
  HttpConnection bob = server.connect();
  bob.send_request("POST", "/mcp", headers(k_bobs_secret, "gate"), large_call("gate"));
  server.gate.wait_for_arrivals(2);
  CHECK(server.post(headers(k_carols_secret, "echo"), large_call("echo")).status == 503);
  CHECK(server.list({"Authorization: Bearer " + k_carols_secret}).status == 200);
}

TEST_CASE("http: a body counts while it is being received") {
  const Running server(small_bodies());
  HttpConnection slow = server.connect();
  slow.send(
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{");
  const auto status = [&] { return server.post(stateless_headers("tools/call", "echo"), large_call("echo")).status; };
  eventually("the first body is being read", [&] { return status() == 503; });
  slow.close();
  eventually("there is room again", [&] { return status() == 200; });
}

TEST_CASE("http: a batch counts until its last call ends, even without its client") {
  Running server(small_bodies());
  const HttpHeaders session = with(plain_headers(), {"Mcp-Session-Id: " + server.initialize({}, "2025-03-26")});
  const std::string answered = R"(dockbridge_http_requests_total{status="200"})";
  const auto status = [&] { return server.post(session, large_call("echo", json::object())).status; };
  HttpConnection batch = server.connect();
  batch.send_request(
      "POST", "/mcp", session,
      json::array({json::parse(large_call("gate", json::object())), json::parse(call_body("echo", json::object(), 2))})
          .dump());
  server.gate.wait_for_arrivals(1);
  const int before = metric(server, answered);
  batch.close();
  eventually("the connection is given up", [&] { return metric(server, answered) > before; });
  CHECK(status() == 503);
  server.gate.open();
  eventually("there is room again", [&] { return status() == 200; });
}

TEST_CASE("http: refusals are counted, also those of unknown sessions") {
  const Running server;
  const std::string not_found = R"(dockbridge_refusals_total{reason="404"})";
  const std::string bad = R"(dockbridge_refusals_total{reason="400"})";
  server.post(with(plain_headers(), {"Mcp-Session-Id: 00"}), body("ping", json::object()));
  CHECK(metric(server, not_found) == 1);
  server.connect().request("DELETE", "/mcp", {"Mcp-Session-Id: 00"});
  CHECK(metric(server, not_found) == 2);
  server.post(plain_headers(), body("ping", json::object()));
  CHECK(metric(server, bad) == 1);
}

TEST_CASE("http: concurrency and rate of requests are limited for each owner") {
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

TEST_CASE("http: the streams of an owner are limited") {
  const Running server(limits([](http::Limits& l) { l.streams_per_owner = 1; }));
  const std::string listen = body("subscriptions/listen", {{"_meta", k_meta}, {"notifications", json::object()}});
  HttpConnection first = server.connect();
  first.send_request("POST", "/mcp", stateless_headers("subscriptions/listen"), listen);
  CHECK(first.receive_head().status == 200);
  CHECK(server.post(stateless_headers("subscriptions/listen"), listen).status == 429);
}

TEST_CASE("http: the sessions of an owner are limited") {
  const Running server(limits([](http::Limits& l) { l.sessions_per_owner = 2; }));
  server.initialize();
  server.initialize();
  const HttpAnswer refused = server.post(plain_headers(), body("initialize", {{"protocolVersion", "2025-11-25"}}));
  CHECK(refused.status == 503);
  CHECK_FALSE(refused.header("Retry-After").empty());
}

TEST_CASE("http: an idle session expires") {
  const Running server(limits([](http::Limits& l) { l.session_idle = milliseconds(1); }));
  const std::string id = server.initialize();
  eventually("the session is forgotten", [&] {
    return server.post(with(plain_headers(), {"Mcp-Session-Id: " + id}), body("ping", json::object())).status == 404;
  });
}

TEST_CASE("http: the text of an exception is not sent to the client") {
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

TEST_CASE("http: remote health and metrics need a token, whatever the headers say") {
  Log log{-1, LogLevel::off, LogFormat::text};
  const Server server({"test", "Test", "1", ""}, {});
  Hub hub(server, log);
  CallScheduler scheduler({.calls = 1}, hub.metrics);
  http::Access access({{"alice", k_secret}});
  http::Front front(hub, scheduler, {}, access, http::Origins({}, {}), {});
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

TEST_CASE("http: a remote client without a token is refused") {
  Log log{-1, LogLevel::off, LogFormat::text};
  const Server server({"test", "Test", "1", ""}, {});
  Hub hub(server, log);
  CallScheduler scheduler({.calls = 1}, hub.metrics);
  HttpSettings settings;
  settings.endpoint = {"0.0.0.0", "0"};
  const auto started = HttpServer::start(settings, hub, scheduler);
  REQUIRE_FALSE(started);
  CHECK(started.error().code == ErrorCode::no_token);
}
