#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>

#include "support/field.hpp"
#include "support/program.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge::test;

namespace {

const json k_modern_meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                            {"io.modelcontextprotocol/clientCapabilities", json::object()},
                            {"io.modelcontextprotocol/clientInfo", {{"name", "test"}, {"version", "1"}}}};

/// A server that cannot reach an engine.
struct OfflineServer : Server {
  OfflineServer() : Server({"--docker-host", "unix:///nonexistent/docker.sock"}) {}
};

}  // namespace

TEST_CASE("initialize: echoes every known handshake revision") {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    OfflineServer server;
    const json answer = server.request("initialize", {{"protocolVersion", version}, {"capabilities", json::object()}});
    CHECK(field(answer, "result", "protocolVersion") == version);
    CHECK(field(answer, "result", "serverInfo", "name") == "dockbridge");
    CHECK(field(answer, "result", "capabilities").contains("tools"));
  }
}

TEST_CASE("initialize: an unknown revision gets the newest handshake revision") {
  OfflineServer server;
  for (const char* version : {"1999-01-01", "2026-07-28"}) {
    const json answer = server.request("initialize", {{"protocolVersion", version}, {"capabilities", json::object()}});
    CHECK(field(answer, "result", "protocolVersion") == "2025-11-25");
  }
}

TEST_CASE("tools/list: needs no engine and no params") {
  OfflineServer server;
  server.initialize();
  server.send({{"jsonrpc", "2.0"}, {"id", 77}, {"method", "tools/list"}});
  const json tools = field(server.receive_answer(77), "result", "tools");
  std::vector<std::string> names;
  for (const json& tool : tools) {
    names.push_back(field(tool, "name"));
    CHECK(field(tool, "inputSchema", "type") == "object");
    CHECK(field(tool, "outputSchema", "type") == "object");
    CHECK(field(tool, "inputSchema", "properties").contains("rationale"));
  }
  CHECK(names == std::vector<std::string>{"execute_command", "check_process", "send_input", "control_process", "python",
                                          "file_read", "file_write", "file_edit", "file_undo", "file_ls", "file_glob",
                                          "file_grep"});
}

TEST_CASE("tools/list: host copies are offered only with --allow-host-path") {
  const TemporaryDirectory host;
  for (const char* name : {"a", "b", "c"}) {
    std::filesystem::create_directory(host / name);
  }
  const std::string at = host.path().string();
  Server server({"--docker-host", "unix:///nonexistent/docker.sock", "--allow-host-path", at + "/a",
                 "--allow-host-path", at + "/b:" + at + "/c"});
  server.initialize();
  const json tools = field(server.request("tools/list"), "result", "tools");
  REQUIRE(tools.size() == 14);
  CHECK(field(tools, 12, "name") == "file_upload");
  CHECK(field(tools, 13, "name") == "file_download");
  CHECK(field(tools, 12).dump().find(at + "/a or " + at + "/b or " + at + "/c") != std::string::npos);
}

TEST_CASE("revisions: an older revision gets no newer fields") {
  OfflineServer server;
  server.initialize("2024-11-05");
  const json tool = field(server.request("tools/list"), "result", "tools", 0);
  CHECK_FALSE(tool.contains("outputSchema"));
  CHECK_FALSE(tool.contains("annotations"));
  CHECK_FALSE(tool.contains("title"));
}

TEST_CASE("ping: the result is empty") {
  OfflineServer server;
  CHECK(field(server.request("ping"), "result") == json::object());
}

TEST_CASE("server/discover: reports versions, capabilities and their lifetime") {
  OfflineServer server;
  const json result = field(server.request("server/discover", {{"_meta", k_modern_meta}}), "result");
  CHECK(field(result, "supportedVersions") == json::array({"2026-07-28"}));
  CHECK(field(result, "capabilities").contains("tools"));
  CHECK(field(result, "resultType") == "complete");
  CHECK(field(result, "ttlMs").get<int>() > 0);
  CHECK(field(result, "cacheScope") == "public");
  CHECK(field(result, "_meta", "io.modelcontextprotocol/serverInfo", "name") == "dockbridge");
}

TEST_CASE("stateless: tools/list needs no handshake and has a lifetime") {
  OfflineServer server;
  const json result = field(server.request("tools/list", {{"_meta", k_modern_meta}}), "result");
  CHECK(field(result, "resultType") == "complete");
  CHECK(field(result, "ttlMs").is_number());
  CHECK(field(result, "cacheScope").is_string());
}

TEST_CASE("stateless: a request needs the client's capabilities") {
  OfflineServer server;
  json meta = k_modern_meta;
  meta.erase("io.modelcontextprotocol/clientCapabilities");
  CHECK(field(server.request("tools/list", {{"_meta", meta}}), "error", "code") == -32602);
}

TEST_CASE("stateless: another version gets the list of supported ones") {
  OfflineServer server;
  json meta = k_modern_meta;
  meta["io.modelcontextprotocol/protocolVersion"] = "2031-01-01";
  const json error = field(server.request("tools/list", {{"_meta", meta}}), "error");
  CHECK(field(error, "code") == -32022);
  CHECK(field(error, "data", "supported") == json::array({"2026-07-28"}));
  CHECK(field(error, "data", "requested") == "2031-01-01");
}

TEST_CASE("stateless: initialize and ping are unknown methods") {
  OfflineServer server;
  CHECK(field(server.request("initialize", {{"_meta", k_modern_meta}}), "error", "code") == -32601);
  CHECK(field(server.request("ping", {{"_meta", k_modern_meta}}), "error", "code") == -32601);
}

TEST_CASE("stateless: without an engine, a call returns a result with isError") {
  OfflineServer server;
  const json result = field(server.request("tools/call", {{"name", "execute_command"},
                                                          {"arguments", {{"command", "true"}, {"rationale", "x"}}},
                                                          {"_meta", k_modern_meta}}),
                            "result");
  CHECK(field(result, "resultType") == "complete");
  CHECK(field(result, "isError") == true);
  CHECK(field(result, "structuredContent", "error", "code") == "no_engine");
}

TEST_CASE("batch: one answer in 2025-03-26, rejected in other revisions") {
  const json batch = json::array({{{"jsonrpc", "2.0"}, {"id", "a"}, {"method", "ping"}},
                                  {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}},
                                  {{"jsonrpc", "2.0"}, {"id", "b"}, {"method", "nonsense"}}});
  {
    OfflineServer server;
    server.initialize("2025-03-26");
    server.send(batch);
    const json answers = server.receive();
    REQUIRE(answers.is_array());
    REQUIRE(answers.size() == 2);
    CHECK(field(answers, 0, "id") == "a");
    CHECK(field(answers, 1, "error", "code") == -32601);
  }
  {
    OfflineServer server;
    server.initialize("2025-06-18");
    server.send(batch);
    CHECK(field(server.receive(), "error", "code") == -32600);
  }
}

TEST_CASE("server: exits when its input ends") {
  OfflineServer server;
  server.initialize();
  server.close_input();
  CHECK(server.wait_for_exit() == 0);
}

TEST_CASE("server: exits on SIGTERM with status 0") {
  OfflineServer server;
  server.initialize();
  server.signal(SIGTERM);
  CHECK(server.wait_for_exit() == 0);
}
