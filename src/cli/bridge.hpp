#pragma once

#include <memory>

#include "cli/options.hpp"
#include "docker/docker_channel.hpp"
#include "docker/engine.hpp"
#include "sandbox/sandbox.hpp"
#include "util/log.hpp"

namespace dockbridge::cli {

/// The chain from the options to the sandbox. Its construction does no input or output. The engine is looked up at the
/// first use, so the list of tools needs no engine.
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
