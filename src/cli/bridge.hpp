#pragma once

#include <memory>

#include "cli/options.hpp"
#include "docker/docker_channel.hpp"
#include "docker/engine.hpp"
#include "error/error.hpp"
#include "sandbox/sandbox.hpp"
#include "util/log.hpp"

namespace dockbridge::cli {

/// The chain from the options to the sandbox. Making it touches nothing: the engine is looked for at the first use,
/// so that a client that only asks for the tools' list gets it without an engine too.
class Bridge {
 public:
  Bridge(const Options& options, Log& log);
  ~Bridge();

  sandbox::Sandbox& sandbox() { return *m_sandbox; }
  docker::Engine& engine() { return *m_engine; }

 private:
  std::unique_ptr<docker::Engine> m_engine;
  std::unique_ptr<docker::DockerChannel> m_channel;
  std::unique_ptr<sandbox::Sandbox> m_sandbox;
};

}  // namespace dockbridge::cli
