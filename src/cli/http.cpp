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

/// The processes of all owners, as far as they can be listed without starting anything.
class ProcessCensus {
 public:
  ProcessCensus(sandbox::Sandbox& sandbox, const std::atomic<bool>& in_use, std::vector<std::string> owners)
      : m_sandbox(sandbox), m_in_use(in_use), m_owners(std::move(owners)) {}

  struct Count {
    std::map<std::string, std::uint64_t> by_phase;
    double round_trip_seconds = 0;  ///< to the agent and back, for one list
  };
  /// None if the container has not been used yet, or cannot be reached.
  [[nodiscard]] std::optional<Count> take() const {
    Count count;
    for (const std::string& owner : m_owners) {
      const auto began = Clock::now();
      const auto list = m_in_use ? m_sandbox.list(owner, k_most_counted)
                                 : Result<sandbox::ProcessList>(fail("unused", "the container has not been used"));
      if (!list) {
        return std::nullopt;
      }
      count.round_trip_seconds = std::chrono::duration<double>(Clock::now() - began).count();
      for (const wire::ProcessState& state : list->processes) {
        ++count.by_phase[std::string(wire::name_of(state.phase))];
      }
    }
    return count;
  }

 private:
  static constexpr std::size_t k_most_counted = 1000;
  sandbox::Sandbox& m_sandbox;
  const std::atomic<bool>& m_in_use;
  std::vector<std::string> m_owners;
};

std::string metrics_of(const ProcessCensus& census) {
  const auto count = census.take();
  std::string text =
      "# HELP dockbridge_processes Processes in the container by phase.\n# TYPE dockbridge_processes gauge\n";
  if (!count) {
    return text;
  }
  for (const auto& [phase, number] : count->by_phase) {
    text += fmt::format("dockbridge_processes{{phase=\"{}\"}} {}\n", phase, number);
  }
  return text + fmt::format(
                    "# HELP dockbridge_agent_seconds How long the agent took to list them.\n"
                    "# TYPE dockbridge_agent_seconds gauge\ndockbridge_agent_seconds {}\n",
                    count->round_trip_seconds);
}

}  // namespace

Result<std::unique_ptr<mcp::HttpServer>> start_http(const Options& options, sandbox::Sandbox& sandbox,
                                                    const std::atomic<bool>& in_use, mcp::Hub& hub, WorkerPool& pool) {
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
  const ProcessCensus census(sandbox, in_use, std::move(owners));
  hub.metrics.add_source([census] { return metrics_of(census); });
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
      live["processes"] = count->by_phase;
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
