#include "cli/bridge.hpp"

#include <cstdlib>

#include "docker/api_engine.hpp"
#include "docker/cli_engine.hpp"

namespace dockbridge::cli {

namespace {

docker::AddressSources address_sources(const Options& options) {
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
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
      m_sandbox(std::make_unique<sandbox::Sandbox>(
          *m_channel, sandbox::Sandbox::Settings{options.container.workdir, options.retention, options.file_root},
          log)) {}

Bridge::~Bridge() = default;

}  // namespace dockbridge::cli
