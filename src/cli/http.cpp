#include "cli/http.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace dockbridge::cli {

namespace {

using mcp::json;

std::string usual_token_file() {
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  return (xdg != nullptr && *xdg != '\0' ? std::string(xdg) : std::string(home != nullptr ? home : "") + "/.config") +
         "/dockbridge/token";
}

Result<std::vector<mcp::http::Token>> find_tokens(const Options& options, Log& log) {
  if (options.http.no_token) {
    return std::vector<mcp::http::Token>{};
  }
  if (!options.http.token.empty()) {
    return mcp::http::parse_tokens(options.http.token, "DOCKBRIDGE_TOKEN");
  }
  const std::string path = options.http.token_file.empty() ? usual_token_file() : options.http.token_file;
  auto tokens = mcp::http::token_file_or_new(path);
  if (tokens) {
    log.info("clients need the token in this file", {{"file", path}});
  }
  return tokens;
}

}  // namespace

Result<std::unique_ptr<mcp::HttpServer>> start_http(const Options& options, sandbox::Sandbox& sandbox, mcp::Hub& hub,
                                                    WorkerPool& pool) {
  const HttpOptions& given = options.http;
  auto tokens = find_tokens(options, hub.log);
  if (!tokens) {
    return fail(tokens.error());
  }
  for (const mcp::http::Token& token : *tokens) {
    if (!token.container.empty() && token.container != options.container.name) {
      return fail("bad_token_file",
                  fmt::format("the token '{}' is for the container '{}', and this server has '{}'", token.name,
                              token.container, options.container.name),
                  "Start one server for each container");
    }
  }
  mcp::HttpSettings settings;
  settings.endpoint = {given.host, given.port};
  settings.tokens = std::move(*tokens);
  settings.hosts = given.hosts;
  settings.origins = given.origins;
  settings.tls_certificate = given.tls_certificate;
  settings.tls_key = given.tls_key;
  settings.limits.sessions = given.max_sessions;
  settings.limits.session_idle = given.session_idle;
  settings.limits.rate_per_owner = given.rate;
  settings.health.live = [began = Clock::now()] {
    const auto uptime = std::chrono::duration_cast<seconds>(Clock::now() - began).count();
    return json{{"status", "ok"}, {"version", DOCKBRIDGE_VERSION}, {"uptimeSeconds", uptime}};
  };
  settings.health.ready = [&sandbox]() -> Result<json> {
    const auto hello = sandbox.hello();
    if (!hello) {
      return fail(hello.error());
    }
    return json{{"status", "ok"}, {"container", sandbox.container_name()}, {"agent", hello->version}};
  };
  auto server = mcp::HttpServer::start(settings, hub, pool);
  if (server) {
    hub.log.info("serving", {{"url", fmt::format("{}://{}:{}/mcp", given.tls_certificate.empty() ? "http" : "https",
                                                 given.host, (*server)->port())}});
  }
  return server;
}

}  // namespace dockbridge::cli
