#include "cli/http.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <optional>

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

/// The processes of all owners, as far as they can be listed without connecting to the container or starting it.
class ProcessCensus {
 public:
  ProcessCensus(sandbox::Sandbox& sandbox, std::vector<std::string> owners)
      : m_sandbox(sandbox), m_owners(std::move(owners)) {}

  using Count = std::map<std::string, std::uint64_t>;
  /// By phase; none if the container cannot be asked.
  [[nodiscard]] std::optional<Count> take() const {
    Count count;
    for (const std::string& owner : m_owners) {
      const auto list = m_sandbox.is_connected() ? std::optional(m_sandbox.list(owner, k_most_counted)) : std::nullopt;
      if (!list || !*list) {
        return std::nullopt;
      }
      for (const wire::ProcessState& state : (*list)->processes) {
        ++count[std::string(wire::name_of(state.phase))];
      }
    }
    return count;
  }

 private:
  static constexpr std::size_t k_most_counted = 1000;
  sandbox::Sandbox& m_sandbox;
  std::vector<std::string> m_owners;
};

std::string container_metrics(sandbox::Sandbox& sandbox, const ProcessCensus& census) {
  std::string text = mcp::metric_head("dockbridge_processes", "gauge", "Processes in the container by phase.");
  for (const auto& [phase, number] : census.take().value_or(ProcessCensus::Count{})) {
    text += fmt::format("dockbridge_processes{{phase=\"{}\"}} {}\n", phase, number);
  }
  text += mcp::metric_head("dockbridge_agent_reconnects_total", "counter",
                           "Connections to the agent that replaced a lost one.");
  text += fmt::format("dockbridge_agent_reconnects_total {}\n", sandbox.reconnections());
  text += mcp::metric_head("dockbridge_agent_round_trip_seconds", "gauge",
                           "How long the agent took to answer a ping just now.");
  const auto took = sandbox.is_connected() ? std::optional(sandbox.round_trip()) : std::nullopt;
  if (took && *took) {
    text += fmt::format("dockbridge_agent_round_trip_seconds {}\n", std::chrono::duration<double>(**took).count());
  }
  return text;
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
  std::vector<std::string> owners = {mcp::Caller{}.owner};
  for (const mcp::http::Token& token : *tokens) {
    owners.push_back(token.name);
  }
  const ProcessCensus census(sandbox, std::move(owners));
  hub.metrics.add_source([&sandbox, census] { return container_metrics(sandbox, census); });
  mcp::HttpSettings settings;
  settings.endpoint = {given.host, given.port};
  settings.tokens = std::move(*tokens);
  settings.hosts = given.hosts;
  settings.origins = given.origins;
  settings.tls_certificate = given.tls_certificate;
  settings.tls_key = given.tls_key;
  settings.limits.body_bytes = given.max_message_bytes;
  settings.limits.sessions = given.max_sessions;
  settings.limits.session_idle = given.session_idle;
  settings.limits.rate_per_owner = given.rate;
  settings.health.live = [census, began = Clock::now()] {
    const auto uptime = std::chrono::duration_cast<seconds>(Clock::now() - began).count();
    json live = {{"status", "ok"}, {"version", DOCKBRIDGE_VERSION}, {"uptimeSeconds", uptime}};
    if (const auto count = census.take()) {
      live["processes"] = *count;
    }
    return live;
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
