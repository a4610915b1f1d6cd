#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/http.hpp"
#include "support/http_port.hpp"
#include "support/temporary_directory.hpp"

namespace dockbridge::test {

inline const std::string k_alice = "0123456789abcdef0123456789abcdef-alice";
inline const std::string k_bob = "0123456789abcdef0123456789abcdef-bob";

/// An HTTP server with two owners, and its container.
class Served {
 public:
  Served() { m_port = http_port_of(server); }

  void send_call(HttpConnection& connection, const std::string& token, const std::string& tool, json arguments,
                 const json& more_meta = json::object()) const {
    arguments["rationale"] = "test";
    send(connection, token, "tools/call", tool, {{"name", tool}, {"arguments", std::move(arguments)}}, more_meta);
  }
  [[nodiscard]] json call(const std::string& token, const std::string& tool, const json& arguments,
                          const json& more_meta = json::object()) const {
    HttpConnection connection(m_port);
    send_call(connection, token, tool, arguments, more_meta);
    return field(connection.receive().json(), "result");
  }
  [[nodiscard]] json read(const std::string& token, const std::string& uri) const {
    HttpConnection connection(m_port);
    send(connection, token, "resources/read", uri, {{"uri", uri}}, json::object());
    return connection.receive().json();
  }
  /// Sends a request of the stateless revision; `name` is the value of Mcp-Name.
  [[nodiscard]] json ask(const std::string& token, const std::string& method, const std::string& name,
                         const json& params, const json& more_meta) const {
    HttpConnection connection(m_port);
    send(connection, token, method, name, params, more_meta);
    return connection.receive().json();
  }
  [[nodiscard]] std::string get(const std::string& path) const {
    return HttpConnection(m_port).request("GET", path, {}).body;
  }
  [[nodiscard]] HttpAnswer get(const std::string& path, const std::string& token) const {
    return HttpConnection(m_port).request("GET", path, {"Authorization: Bearer " + token});
  }
  [[nodiscard]] int port() const { return m_port; }

  /// Starts a session of revision 2025-11-25 and returns its id.
  [[nodiscard]] std::string initialize(const std::string& token) const {
    const json body = {{"jsonrpc", "2.0"},
                       {"id", 1},
                       {"method", "initialize"},
                       {"params", {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}}}};
    const HttpAnswer answer = HttpConnection(m_port).request("POST", "/mcp", session_headers(token, ""), body.dump());
    REQUIRE(answer.status == 200);
    return answer.header("Mcp-Session-Id");
  }
  void begin_call_in(const std::string& session, const std::string& token, HttpConnection& connection,
                     const std::string& tool, json arguments) const {
    arguments["rationale"] = "test";
    const json body = {{"jsonrpc", "2.0"},
                       {"id", 2},
                       {"method", "tools/call"},
                       {"params", {{"name", tool}, {"arguments", std::move(arguments)}}}};
    connection.send_request("POST", "/mcp", session_headers(token, session), body.dump());
  }
  [[nodiscard]] json call_in(const std::string& session, const std::string& token, const std::string& tool,
                             const json& arguments) const {
    HttpConnection connection(m_port);
    begin_call_in(session, token, connection, tool, arguments);
    return field(connection.receive().json(), "result");
  }

 private:
  static HttpHeaders session_headers(const std::string& token, const std::string& session) {
    HttpHeaders headers = {"Content-Type: application/json", "Accept: application/json, text/event-stream",
                           "Authorization: Bearer " + token};
    if (!session.empty()) {
      headers.insert(headers.end(), {"Mcp-Session-Id: " + session, "MCP-Protocol-Version: 2025-11-25"});
    }
    return headers;
  }
  static void send(HttpConnection& connection, const std::string& token, const std::string& method,
                   const std::string& name, json params, const json& more_meta) {
    json meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                 {"io.modelcontextprotocol/clientCapabilities", json::object()}};
    meta.update(more_meta);
    params["_meta"] = std::move(meta);
    const json body = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
    connection.send_request("POST", "/mcp",
                            {"Content-Type: application/json", "Accept: application/json, text/event-stream",
                             "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method, "Mcp-Name: " + name,
                             "Authorization: Bearer " + token},
                            body.dump());
  }
  TemporaryDirectory m_directory;
  int m_port = 0;

 public:
  Container container{"dockbridge-test:slim", {"--init"}};
  Server server{{"-c", container.name(), "--http", "127.0.0.1:0", "--token-file", token_file()}};

 private:
  [[nodiscard]] std::string token_file() const {
    const std::string path = (m_directory / "tokens").string();
    std::ofstream(path) << json{
        {"tokens", {{{"name", "alice"}, {"token", k_alice}}, {{"name", "bob"}, {"token", k_bob}}}}};
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    return path;
  }
};

}  // namespace dockbridge::test
