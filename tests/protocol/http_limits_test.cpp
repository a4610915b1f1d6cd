// Limits for one HTTP client, and checks of the options at start, with the real program.

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "support/full.hpp"
#include "support/http.hpp"
#include "support/http_port.hpp"
#include "support/memory.hpp"
#include "support/program.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

const std::string k_long_secret = "0123456789abcdef0123456789abcdef-secret";
const std::vector<std::string> k_offline = {"--docker-host", "unix:///nonexistent/docker.sock", "--http",
                                            "127.0.0.1:0"};

std::vector<std::string> offline_arguments(std::vector<std::string> more) {
  more.insert(more.end(), k_offline.begin(), k_offline.end());
  return more;
}

HttpHeaders stateless(const std::string& method, const std::string& token) {
  return {"Content-Type: application/json", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method,
          "Authorization: Bearer " + token};
}

int status_of_list(int port, const std::string& token) {
  const json meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                     {"io.modelcontextprotocol/clientCapabilities", json::object()}};
  const json body = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/list"}, {"params", {{"_meta", meta}}}};
  return HttpConnection(port).request("POST", "/mcp", stateless("tools/list", token), body.dump()).status;
}

/// The error that the program prints for this token file.
std::string complaint(const std::string& text, mode_t mode = 0600) {
  const TemporaryDirectory directory;
  const std::string path = (directory / "tokens").string();
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  std::vector<std::string> argv = offline_arguments({"--token-file", path});
  argv.insert(argv.begin(), program_path());
  const Finished finished = run(argv, {}, seconds(20));
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.find("-secret") == std::string::npos);
  return finished.err;
}

void allow_descriptors(rlim_t wanted) {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(wanted, limit.rlim_max));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(limit.rlim_cur >= wanted);
}

}  // namespace

TEST_CASE("http: a short token causes a warning with its name at start") {
  Server short_one(offline_arguments({}), {{"DOCKBRIDGE_TOKEN", "0123456789abcdef-secret"}});
  CHECK(status_of_list(http_port_of(short_one), "0123456789abcdef-secret") == 200);
  CHECK(short_one.log().find("fewer than 32 characters") != std::string::npos);
  CHECK(short_one.log().find("token=token") != std::string::npos);
  CHECK(short_one.log().find("-secret") == std::string::npos);
  Server long_one(offline_arguments({}), {{"DOCKBRIDGE_TOKEN", k_long_secret}});
  CHECK(status_of_list(http_port_of(long_one), k_long_secret) == 200);
  CHECK(long_one.log().find("fewer than 32 characters") == std::string::npos);
}

TEST_CASE("http: an invalid token file stops the start; the error names the entry") {
  const std::string good = R"({"name": "ci", "token": "0123456789abcdef-secret", "tools": ["file_read"]})";
  const auto of = [](const std::string& entries) { return R"({"tokens": [)" + entries + "]}"; };
  CHECK(complaint(of(R"({"name": "ci", "token": "0123456789abcdef-secret", "toolz": ["file_read"]})"))
            .find("token 'ci' has the unknown key 'toolz'") != std::string::npos);
  CHECK(complaint(of(R"({"name": "ci", "token": "0123456789abcdef-secret", "tools": ["file_raed"]})"))
            .find("Token 'ci' has an unknown tool: 'file_raed'") != std::string::npos);
  CHECK(complaint(of(R"({"name": "ci", "token": "0123456789abcdef-secret", "tools": []})")).find("token 'ci'") !=
        std::string::npos);
  CHECK(complaint(of(good + R"(, {"name": "me", "token": "0123456789abcdef-secret"})"))
            .find("token 'me' has the same secret as 'ci'") != std::string::npos);
  CHECK(complaint(of(good + R"(, {"name": "ci", "token": "fedcba9876543210-secret"})")).find("token 'ci'") !=
        std::string::npos);
  CHECK(complaint(of(good), 0644).find("can be read by others") != std::string::npos);
}

TEST_CASE("http: a FIFO as token or config file is rejected without blocking") {
  const TemporaryDirectory directory;
  const std::string fifo = (directory / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const char* option : {"--token-file", "--config"}) {
    std::vector<std::string> argv = offline_arguments({option, fifo});
    argv.insert(argv.begin(), program_path());
    const Finished finished = run(argv, {}, seconds(20));
    CHECK(finished.exit_code == 2);
    CHECK(finished.err.find("is not a regular file") != std::string::npos);
  }
}

TEST_CASE("config: a file that others can change is rejected, a link is followed") {
  const TemporaryDirectory directory;
  const std::string path = (directory / "config.json").string();
  const std::string link = (directory / "link.json").string();
  std::ofstream(path) << R"({"log-level": "loud"})";
  REQUIRE(::symlink(path.c_str(), link.c_str()) == 0);
  const auto error = [](const std::string& file) {
    return run({program_path(), "--config", file, "doctor"}, {}, seconds(20)).err;
  };
  CHECK(error(link).find("Not a valid log-level: 'loud'") != std::string::npos);
  REQUIRE(::chmod(path.c_str(), 0646) == 0);
  CHECK(error(path).find("can be changed by others") != std::string::npos);
}

TEST_CASE("http: an invalid --allow-origin or --allow-host stops the start") {
  for (const auto& [option, value] : {std::pair("--allow-origin", "http://localhost:x@evil.com"),
                                      std::pair("--allow-host", "localhost:x@evil.com")}) {
    std::vector<std::string> argv = offline_arguments({"--no-token", option, value});
    argv.insert(argv.begin(), program_path());
    const Finished finished = run(argv, {}, seconds(20));
    CHECK(finished.exit_code == 2);
    CHECK(finished.err.find(value) != std::string::npos);
  }
}

TEST_CASE("http: an origin that only starts with a local name is rejected") {
  Server server(offline_arguments({"--no-token"}));
  const int port = http_port_of(server);
  CHECK(HttpConnection(port).request("GET", "/healthz", {"Origin: http://localhost:x@evil.com"}).status == 403);
  CHECK(HttpConnection(port).request("GET", "/healthz", {"Host: localhost:x@evil.com"}).status == 403);
  CHECK(HttpConnection(port).request("GET", "/healthz", {"Origin: http://localhost:3000"}).status == 200);
}

TEST_CASE("http: wrong tokens do not lock out the right one") {
  Server server(offline_arguments({}), {{"DOCKBRIDGE_TOKEN", k_long_secret}});
  const int port = http_port_of(server);
  for (int i = 0; i < 30; ++i) {
    CHECK(status_of_list(port, "0123456789abcdef-wrong") == (i < 10 ? 401 : 429));
  }
  CHECK(status_of_list(port, k_long_secret) == 200);
}

TEST_CASE("http: 1,100 idle connections block no other client") {
  Server server(offline_arguments({}), {{"DOCKBRIDGE_TOKEN", k_long_secret}});
  const int port = http_port_of(server);
  allow_descriptors(1500);
  std::vector<HttpConnection> idle;
  for (int i = 0; i < 1100; ++i) {
    idle.emplace_back(port);
  }
  for (int i = 0; i < 20; ++i) {
    CHECK(status_of_list(port, k_long_secret) == 200);
  }
}

TEST_CASE("http: 16 MiB of nested JSON use less than 100 MiB of memory") {
  Server server(offline_arguments({}), {{"DOCKBRIDGE_TOKEN", k_long_secret}});
  const int port = http_port_of(server);
  CHECK(status_of_list(port, k_long_secret) == 200);
  const std::size_t before = peak_memory(server.pid());
  for (const std::string value : {"[],", "{},", "[[]],", R"({"":0},)"}) {
    std::string body = "[";
    while (body.size() + value.size() < 16UL * 1024 * 1024 - 2) {
      body += value;
    }
    CHECK(HttpConnection(port).request("POST", "/mcp", stateless("tools/list", k_long_secret), body + "0]").status ==
          413);
  }
  const std::size_t peak = peak_memory(server.pid());
  MESSAGE("peak before: ", before / 1024 / 1024, " MiB, after: ", peak / 1024 / 1024, " MiB");
  CHECK((!k_memory_is_meaningful || peak - before < 100UL * 1024 * 1024));
}
