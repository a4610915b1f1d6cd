#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mcp/transport/http_server.hpp"
#include "support/field.hpp"
#include "support/http.hpp"
#include "unit/mcp/doubles.hpp"

namespace dockbridge::mcp::test {

using dockbridge::test::field;
using dockbridge::test::HttpAnswer;
using dockbridge::test::HttpConnection;
using dockbridge::test::HttpHeaders;

inline const std::string k_secret = "0123456789abcdef-alice";
inline const std::string k_bobs_secret = "0123456789abcdef-bobby";

inline const json k_meta = {{k_meta_version, "2026-07-28"}, {k_meta_capabilities, json::object()}};

inline HttpHeaders plain_headers() {
  return {"Content-Type: application/json", "Accept: application/json, text/event-stream"};
}

inline HttpHeaders with(HttpHeaders headers, const HttpHeaders& more) {
  headers.insert(headers.end(), more.begin(), more.end());
  return headers;
}

inline HttpHeaders stateless_headers(const std::string& method, const std::string& name = "") {
  HttpHeaders headers = with(plain_headers(), {"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method});
  return name.empty() ? headers : with(headers, {"Mcp-Name: " + name});
}

inline std::string body(const std::string& method, json params, const json& id = 1) {
  return request_message(id, method, std::move(params)).dump();
}

inline std::string call_body(const std::string& tool, json meta = k_meta, const json& id = 1) {
  return body("tools/call", {{"name", tool}, {"_meta", std::move(meta)}}, id);
}

/// A server with the tools of these tests.
class Running {
 public:
  explicit Running(http::Limits limits = {}, std::vector<http::Token> tokens = {}, HttpSettings more = {},
                   const CallAdmission::Limits& calls = {.calls = 64})
      : server({"test", "Test", "1", ""}, {tools()}), scheduler(calls, hub.metrics) {
    more.limits = limits;
    more.tokens = std::move(tokens);
    more.endpoint.port = "0";
    auto started = HttpServer::start(more, hub, scheduler);
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
  Deliveries deliveries;  // of results of the tool "gate"
  std::vector<Tool> tools() {
    return {tool("echo",
                 [](const json& arguments, const CallContext&) {
                   return ToolResult{arguments.dump(), nullptr};
                 }),
            tool("owner",
                 [](const json&, const CallContext& context) {
                   return ToolResult{context.owner, nullptr};
                 }),
            tool("gate", [this](const json&, const CallContext& context) { return through(context); }),
            tool("progress",
                 [this](const json&, const CallContext& context) {
                   context.report_progress("begun");
                   return through(context);
                 }),
            tool("hang up", [this](const json&, const CallContext& context) {
              context.hang_up();
              return through(context);
            })};
  }
  ToolResult through(const CallContext& context) {
    gate.pass(context);
    ToolResult result{"through", nullptr};
    result.on_delivered = deliveries.expect();
    return result;
  }
  Log log{-1, LogLevel::off, LogFormat::text};
  Server server;
  Hub hub{server, log};
  CallScheduler scheduler;
  std::unique_ptr<HttpServer> http;
};

/// The next event's message. Comments are skipped.
inline json next_message(HttpConnection& connection) {
  auto event = connection.next_event();
  while (event && event->empty()) {
    event = connection.next_event();
  }
  REQUIRE(event);
  return json::parse(*event);
}

inline std::string text_of(const HttpAnswer& answer) {
  return field(answer.json(), "result", "content", 0, "text");
}

inline http::Limits limits(void (*change)(http::Limits&)) {
  http::Limits changed;
  change(changed);
  return changed;
}

}  // namespace dockbridge::mcp::test
