// Messages over HTTP: requests and their responses.

#include <doctest/doctest.h>
#include <httplib.h>

#include "support/field.hpp"
#include "support/program.hpp"
#include "support/temporary_directory.hpp"
#include "unit/mcp/transport/http/running.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::field;

TEST_CASE("http: stateless requests on one connection are answered with JSON") {
  const Running server;
  HttpConnection connection = server.connect();
  for (int i = 0; i < 50; ++i) {
    const HttpAnswer answer =
        connection.request("POST", "/mcp", stateless_headers("tools/call", "echo"), call_body("echo", k_meta, i));
    REQUIRE(answer.status == 200);
    CHECK(answer.header("Content-Type") == "application/json");
    CHECK(field(answer.json(), "id") == i);
    CHECK(text_of(answer) == "{}");
  }
}

TEST_CASE("http: headers that contradict the body are refused") {
  const Running server;
  const auto code = [&](const HttpHeaders& headers, const std::string& text) {
    const HttpAnswer answer = server.post(headers, text);
    CHECK(answer.status == 400);
    CHECK(field(answer.json(), "id") == 1);
    return field(answer.json(), "error", "code").get<int>();
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

TEST_CASE("http: a name may be encoded, and an unknown method is 404") {
  const Running server;
  CHECK(server.post(stateless_headers("tools/call", "=?base64?ZWNobw==?="), call_body("echo")).status == 200);
  const HttpAnswer unknown = server.post(stateless_headers("no/such"), body("no/such", {{"_meta", k_meta}}));
  CHECK(unknown.status == 404);
  CHECK(field(unknown.json(), "error", "code") == k_method_not_found);
}

TEST_CASE("http: header values are not decoded like URLs") {
  const Running server;
  for (const char* name : {"a%2Fb", "a+b", "%41", "=?base64?YSUyRmI=?="}) {
    CAPTURE(name);
    const std::string meant = std::string(name).starts_with("=?") ? "a%2Fb" : name;
    const HttpAnswer answer = server.post(stateless_headers("tools/call", name), call_body(meant));
    CHECK(field(answer.json(), "error", "code") ==
          k_invalid_params);  // the tool does not exist, but the header is right
  }
}

TEST_CASE("http: a session begins with initialize and ends with DELETE") {
  const Running server;
  const std::string id = server.initialize();
  REQUIRE(id.size() == 32);
  const HttpHeaders session = with(plain_headers(), {"Mcp-Session-Id: " + id});
  CHECK(server.post(session, notification_message("notifications/initialized", json::object()).dump()).status == 202);
  CHECK(field(server.post(session, body("ping", json::object())).json(), "result") == json::object());
  CHECK(server.post(plain_headers(), body("ping", json::object())).status == 400);
  CHECK(server.post(with(plain_headers(), {"Mcp-Session-Id: 00"}), body("ping", json::object())).status == 404);
  CHECK(server.connect().request("DELETE", "/mcp", session).status == 204);
  CHECK(server.post(session, body("ping", json::object())).status == 404);
  CHECK(server.connect().request("DELETE", "/mcp", session).status == 404);
}

TEST_CASE("http: only the revision that has batches accepts them") {
  const Running server;
  const std::string batch =
      json::array({request_message(1, "ping", json::object()), request_message(2, "ping", json::object())}).dump();
  const std::string old = server.initialize({}, "2025-03-26");
  CHECK(server.post(with(plain_headers(), {"Mcp-Session-Id: " + old}), batch).json().size() == 2);
  const std::string newer = server.initialize();
  CHECK(field(server.post(with(plain_headers(), {"Mcp-Session-Id: " + newer}), batch).json(), "error", "code") ==
        k_invalid_request);
}

TEST_CASE("http: other paths and methods") {
  const Running server;
  CHECK(server.connect().request("GET", "/nothing", {}).status == 404);
  CHECK(server.connect().request("PUT", "/mcp", {}).status == 405);
  CHECK(server.connect().request("OPTIONS", "/mcp", {}).header("Access-Control-Allow-Origin").empty());
  CHECK(server.connect().request("GET", "/mcp", stateless_headers("x")).status == 405);
  CHECK(server.post({"Content-Type: text/plain"}, "{}").status == 415);
  CHECK(server.post({"Content-Type: application/jsonp"}, "{}").status == 415);
  for (const char* type : {"Application/JSON", "application/json;charset=utf-8", "application/json ; charset=utf-8"}) {
    CHECK(server.post({std::string("Content-Type: ") + type}, "{").status == 400);
  }
  CHECK(server.post({"Content-Type: application/json", "Accept: text/html"}, "{}").status == 406);
  CHECK(server.post(plain_headers(), "{").status == 400);
}

TEST_CASE("http: health and metrics") {
  const Running server;
  CHECK(field(server.connect().request("GET", "/healthz", {}).json(), "status") == "ok");
  CHECK(server.connect().request("GET", "/readyz", {}).status == 200);
  server.post(stateless_headers("tools/call", "echo"), call_body("echo"));
  const std::string metrics = server.connect().request("GET", "/metrics", {}).body;
  CHECK(metrics.find("dockbridge_calls_total{tool=\"echo\",outcome=\"ok\"} 1\n") != std::string::npos);
  CHECK(metrics.find("dockbridge_call_seconds_count{tool=\"echo\"} 1\n") != std::string::npos);
}

TEST_CASE("http: with a certificate it is HTTPS") {
  const dockbridge::test::TemporaryDirectory directory;
  const std::string key = (directory / "key.pem").string();
  const std::string certificate = (directory / "cert.pem").string();
  dockbridge::test::run_ok({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                            certificate, "-subj", "/CN=localhost", "-days", "1"});
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
  CHECK_FALSE(HttpServer::start(settings, server.hub, server.scheduler));
}
