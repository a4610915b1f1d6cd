#include <doctest/doctest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "support/field.hpp"
#include "support/http.hpp"
#include "support/http_port.hpp"
#include "support/program.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

const std::string k_secret = "0123456789abcdef-secret";

std::vector<std::string> offline(std::vector<std::string> more) {
  more.insert(more.end(), {"--docker-host", "unix:///nonexistent/docker.sock", "--http", "127.0.0.1:0"});
  return more;
}

HttpAnswer initialize(int port, const std::string& token) {
  return HttpConnection(port).request(
      "POST", "/mcp", {"Content-Type: application/json", "Authorization: Bearer " + token},
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})");
}

}  // namespace

TEST_CASE("http: served beside stdio, and the end of stdin ends only stdio") {
  Server server(offline({"--stdio"}), {{"DOCKBRIDGE_TOKEN", k_secret}});
  const int port = http_port_of(server);
  server.initialize();
  CHECK(initialize(port, k_secret).status == 200);
  CHECK(initialize(port, "0123456789abcdef-wrong").status == 401);
  server.close_input();
  CHECK(initialize(port, k_secret).status == 200);
  server.signal(SIGTERM);
  const int status = server.wait_for_exit();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("http: the first start creates a token and reports only its file") {
  const TemporaryDirectory home;
  const std::string path = (home / "dockbridge" / "token").string();
  Server server(offline({}), {{"XDG_CONFIG_HOME", home.path().string()}});
  const int port = http_port_of(server);
  std::string secret;
  std::getline(std::ifstream(path), secret);
  CHECK(secret.size() == 64);
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(initialize(port, secret).status == 200);
  CHECK(server.log().find(path) != std::string::npos);
  CHECK(server.log().find(secret) == std::string::npos);
}

TEST_CASE("http: an unusable address is reported at start") {
  const auto complaint = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {program_path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const Finished finished = run(argv, {{"DOCKBRIDGE_TOKEN", k_secret}});
    CHECK(finished.exit_code == 2);
    return finished.err;
  };
  CHECK(complaint({"--http", "0.0.0.0:0", "--no-token"}).find("without a token") != std::string::npos);
  CHECK(complaint({"--http", "no-such-host.invalid:1"}).find("Address not found") != std::string::npos);
  CHECK(complaint({"--http", "127.0.0.1:99999"}).find("127.0.0.1:7332") != std::string::npos);
  CHECK(complaint({"--http", "127.0.0.1:0", "--tls-cert", "/nonexistent"}).find("--tls-key") != std::string::npos);
}

TEST_CASE("http: a token for another container is rejected at start") {
  const TemporaryDirectory directory;
  const std::string path = (directory / "tokens").string();
  std::ofstream(path) << R"({"tokens": [{"name": "ci", "token": "0123456789abcdef", "container": "other"}]})";
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  const Finished finished = run({program_path(), "--http", "127.0.0.1:0", "--token-file", path});
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.find("'other'") != std::string::npos);
}

TEST_CASE("http: lists need no engine, and readiness reports that there is none") {
  Server server(offline({"--no-token"}));
  const int port = http_port_of(server);
  for (const char* method : {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}) {
    const json body = {{"jsonrpc", "2.0"},
                       {"id", 1},
                       {"method", method},
                       {"params",
                        {{"_meta",
                          {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                           {"io.modelcontextprotocol/clientCapabilities", json::object()}}}}}};
    const HttpAnswer answer = HttpConnection(port).request(
        "POST", "/mcp",
        {"Content-Type: application/json", "MCP-Protocol-Version: 2026-07-28", std::string("Mcp-Method: ") + method},
        body.dump());
    CHECK(answer.status == 200);
    CHECK(answer.json().contains("result"));
  }
  CHECK(field(HttpConnection(port).request("GET", "/healthz", {}).json(), "status") == "ok");
  CHECK(HttpConnection(port).request("GET", "/readyz", {}).status == 503);
}
