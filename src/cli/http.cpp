#include "cli/http.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "tools/tool_selection.hpp"
#include "util/text.hpp"

namespace dockbridge::cli {

namespace {

using mcp::json;

constexpr milliseconds k_look_patience{5'000};
/// Each connection uses two descriptors.
constexpr rlim_t k_wanted_descriptors = 4096;

/// With the usual soft limit of 1024, clients would be refused before the limits of HTTP are reached.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < k_wanted_descriptors) {
    limit.rlim_cur = std::min(limit.rlim_max, k_wanted_descriptors);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

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
  const std::string path = token_file_of(options);
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
  /// By phase; empty if there is no connection to the container.
  [[nodiscard]] std::optional<Count> take() const {
    Count count;
    for (const std::string& owner : m_owners) {
      const auto list = m_sandbox.processes().list(owner, k_max_counted, {}, sandbox::Connect::never);
      if (!list) {
        return std::nullopt;
      }
      for (const wire::ProcessState& state : list->processes) {
        ++count[std::string(wire::name_of(state.phase))];
      }
    }
    return count;
  }

  /// Live named sessions by kind and state. Does not read their events, so a state may be out of date.
  [[nodiscard]] std::map<std::pair<std::string, std::string>, std::uint64_t> sessions() const {
    std::map<std::pair<std::string, std::string>, std::uint64_t> count;
    for (const std::string& owner : m_owners) {
      const auto list = m_sandbox.processes().list(owner, 0, {}, sandbox::Connect::never);
      if (!list) {
        return {};
      }
      for (const wire::ProcessState& state : list->processes) {
        if (!state.running() || !state.session || state.session->name.empty()) {
          continue;
        }
        const bool is_busy = m_sandbox.sessions().handle(state.id, owner)->is_busy();
        const char* phase = !is_busy                                            ? "idle"
                            : state.waits_for_input == wire::WaitsForInput::yes ? "waits_for_input"
                                                                                : "running";
        ++count[{std::string(wire::name_of(state.session->kind)), phase}];
      }
    }
    return count;
  }

 private:
  static constexpr std::size_t k_max_counted = 1000;
  sandbox::Sandbox& m_sandbox;
  std::vector<std::string> m_owners;
};

std::string summary(const char* name, const std::string& labels, const sandbox::CodeSessionCounts::Sum& sum) {
  return fmt::format("{0}_sum{1} {2}\n{0}_count{1} {3}\n", name, labels, sum.seconds, sum.count);
}

/// Sessions, their cells and their starts, as far as this server has seen them.
std::string session_metrics(sandbox::Sandbox& sandbox, const ProcessCensus& census) {
  const auto counts = sandbox.sessions().counts();
  std::string text = mcp::metric_head("dockbridge_sessions", "gauge", "Python sessions and shells by kind and state.");
  for (const auto& [labels, number] : census.sessions()) {
    text += fmt::format("dockbridge_sessions{{kind=\"{}\",state=\"{}\"}} {}\n", labels.first, labels.second, number);
  }
  text += mcp::metric_head("dockbridge_cells_total", "counter", "Code and commands run in sessions, by outcome.");
  for (std::size_t i = 0; i < counts.cells.size(); ++i) {
    text += fmt::format("dockbridge_cells_total{{outcome=\"{}\"}} {}\n", sandbox::CodeSessionCounts::k_outcomes.at(i),
                        counts.cells.at(i));
  }
  text += mcp::metric_head("dockbridge_cell_seconds", "summary", "Run time of cells that have ended.");
  text += summary("dockbridge_cell_seconds", "", counts.cell_time);
  text += mcp::metric_head("dockbridge_interpreter_start_seconds", "summary",
                           "Time from the start of an interpreter to its first message.");
  text += summary("dockbridge_interpreter_start_seconds", "{start=\"warm\"}", counts.warm_starts);
  text += summary("dockbridge_interpreter_start_seconds", "{start=\"cold\"}", counts.cold_starts);
  return text;
}

std::string container_metrics(sandbox::Sandbox& sandbox, const ProcessCensus& census) {
  std::string text = mcp::metric_head("dockbridge_processes", "gauge", "Processes in the container by phase.");
  for (const auto& [phase, number] : census.take().value_or(ProcessCensus::Count{})) {
    text += fmt::format("dockbridge_processes{{phase=\"{}\"}} {}\n", phase, number);
  }
  text += mcp::metric_head("dockbridge_agent_reconnects_total", "counter",
                           "Connections to the agent that replaced a lost one.");
  text += fmt::format("dockbridge_agent_reconnects_total {}\n", sandbox.reconnections());
  text += mcp::metric_head("dockbridge_agent_round_trip_seconds", "gauge", "Round-trip time of a ping to the agent.");
  if (const auto took = sandbox.round_trip()) {
    text += fmt::format("dockbridge_agent_round_trip_seconds {}\n", std::chrono::duration<double>(*took).count());
  }
  return text;
}

/// Checks the state of the container. Does not connect to, start or create it.
Result<json> look_at_container(Bridge& bridge) {
  const std::string name = bridge.sandbox().container_name();
  if (const auto hello = bridge.sandbox().present_hello()) {
    return json{{"status", "ok"}, {"container", name}, {"agent", hello->version}};
  }
  const auto container = bridge.engine().inspect(name, Deadline::after(k_look_patience));
  if (!container) {
    return fail(container.error());
  }
  const json state = container->value("State", json::object());
  if (!state.value("Running", false) || state.value("Paused", false)) {
    return fail(ErrorCode::container_stopped, fmt::format("Container is not running: {}", name),
                "A tool call, or /readyz with a token, starts it");
  }
  return json{{"status", "ok"}, {"container", name}};
}

/// Checks that the server has the container and the tools that the tokens name. The token file's parser cannot know
/// them.
Result<void> check_tokens(const std::vector<mcp::http::Token>& tokens, const Options& options,
                          const mcp::Catalogue& catalogue) {
  for (const mcp::http::Token& token : tokens) {
    if (!token.container.empty() && token.container != options.container.name) {
      return fail(ErrorCode::bad_token_file,
                  fmt::format("Token '{}' is for container '{}'; this server uses '{}'", token.name, token.container,
                              options.container.name),
                  "Start one server for each container");
    }
    for (const std::string& tool : token.tools.value_or(std::set<std::string>{})) {
      if (catalogue.find_tool(tool) == nullptr) {
        return fail(ErrorCode::bad_token_file,
                    fmt::format("Token '{}' has an unknown tool: '{}'", token.name, printable_line(tool, 100)),
                    fmt::format("Accepted: {}; file_upload and file_download only with --allow-host-path",
                                fmt::join(tools::k_tool_names, ", ")));
      }
    }
  }
  return {};
}

}  // namespace

std::string token_file_of(const Options& options) {
  if (options.http.port.empty() || options.http.no_token || !options.http.token.empty()) {
    return "";
  }
  return options.http.token_file.empty() ? usual_token_file() : options.http.token_file;
}

Result<std::unique_ptr<mcp::HttpServer>> start_http(const Options& options, Bridge& bridge, mcp::Hub& hub,
                                                    mcp::CallScheduler& scheduler) {
  const HttpOptions& given = options.http;
  sandbox::Sandbox& sandbox = bridge.sandbox();
  auto tokens = find_tokens(options, hub.log);
  if (!tokens) {
    return fail(tokens.error());
  }
  if (auto usable = check_tokens(*tokens, options, hub.server.catalogue); !usable) {
    return fail(usable.error());
  }
  for (const mcp::http::Token& token : *tokens) {
    if (token.secret.size() < mcp::http::k_safe_secret_length) {
      hub.log.warn("a token has fewer than 32 characters and may be guessed; replace it", {{"token", token.name}});
    }
  }
  raise_descriptor_limit();
  std::vector<std::string> owners = {mcp::Caller{}.owner};
  for (const mcp::http::Token& token : *tokens) {
    owners.push_back(token.name);
  }
  const ProcessCensus census(sandbox, std::move(owners));
  hub.metrics.add_source(
      [&sandbox, census] { return container_metrics(sandbox, census) + session_metrics(sandbox, census); });
  mcp::HttpSettings settings;
  settings.endpoint = {given.host, given.port};
  settings.tokens = std::move(*tokens);
  settings.hosts = given.hosts;
  settings.origins = given.origins;
  settings.tls_certificate = given.tls_certificate;
  settings.tls_key = given.tls_key;
  settings.limits.body_bytes = given.max_message_bytes;
  settings.limits.sessions_per_owner = given.max_sessions;
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
  settings.health.ready = [&bridge, &sandbox](bool may_start) -> Result<json> {
    if (!may_start) {
      return look_at_container(bridge);
    }
    const auto hello = sandbox.hello();
    if (!hello) {
      return fail(hello.error());
    }
    return json{{"status", "ok"}, {"container", sandbox.container_name()}, {"agent", hello->version}};
  };
  auto server = mcp::HttpServer::start(settings, hub, scheduler);
  if (server) {
    hub.log.info("serving", {{"url", fmt::format("{}://{}:{}/mcp", given.tls_certificate.empty() ? "http" : "https",
                                                 given.host, (*server)->port())}});
  }
  return server;
}

}  // namespace dockbridge::cli
