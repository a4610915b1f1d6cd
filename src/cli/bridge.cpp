#include "cli/bridge.hpp"

#include <cstdlib>

#include "docker/api_engine.hpp"
#include "docker/cli_engine.hpp"

namespace dockbridge::cli {

namespace {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

/// Empty if there is no home directory.
std::string trusted_runs_directory() {
  std::string state = environment("XDG_STATE_HOME").value_or("");
  if (state.empty()) {
    const std::string home = environment("HOME").value_or("");
    state = home.empty() ? "" : home + "/.local/state";
  }
  return state.empty() ? "" : state + "/dockbridge/trusted-runs";
}

docker::AddressSources address_sources(const Options& options) {
  return {options.docker_host, environment, environment("HOME").value_or("")};
}

std::unique_ptr<docker::Engine> make_engine(const Options& options) {
  switch (options.via) {
    case Via::exec:
      return std::make_unique<docker::CliEngine>(options.docker_command, options.docker_host);
    case Via::engine:
      break;
  }
  return std::make_unique<docker::ApiEngine>([sources = address_sources(options)] { return find_engine(sources); });
}

}  // namespace

Bridge::Bridge(const Options& options, Log& log)
    : m_engine(make_engine(options)),
      m_channel(std::make_unique<docker::DockerChannel>(*m_engine, options.container, log)),
      m_sandbox(
          std::make_unique<sandbox::Sandbox>(*m_channel,
                                             sandbox::Sandbox::Settings{options.container.workdir, options.retention,
                                                                        options.file_root, trusted_runs_directory()},
                                             log)) {}

Bridge::~Bridge() = default;

}  // namespace dockbridge::cli
