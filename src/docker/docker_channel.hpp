#pragma once

#include <memory>
#include <string>

#include "docker/engine.hpp"
#include "sandbox/channel.hpp"
#include "util/log.hpp"

namespace dockbridge::docker {

/// Policy for the container.
struct ContainerPolicy {
  std::string name = "mcp-container";
  std::string image = "dockbridge-sandbox:latest";  ///< to create it from, if it does not exist
  std::string workdir = "/app";
  std::string workspace;      ///< host directory to mount at workdir when creating
  bool may_start = true;      ///< start it if it is stopped
  bool may_create = true;     ///< create it if it does not exist and the image does
  bool may_go_direct = true;  ///< reach the agent by a socket in the directory that is mounted at workdir, if one is
};

/// A channel to a Docker container. Finds, starts or creates the container by the policy.
class DockerChannel : public sandbox::Channel {
 public:
  DockerChannel(Engine& engine, ContainerPolicy policy, Log& log);

  [[nodiscard]] std::string container_name() const override { return m_policy.name; }
  Result<sandbox::ContainerRun> prepare(Deadline deadline) override;
  Result<sandbox::Condition> condition(const sandbox::ContainerRun& run, Deadline deadline) override;
  Result<std::unique_ptr<sandbox::ByteStream>> open(const sandbox::ContainerRun& run,
                                                    const std::vector<std::string>& argv, Deadline deadline) override;
  Result<void> place(const sandbox::ContainerRun& run, const std::string& base,
                     const std::vector<sandbox::PlacedFile>& files, Deadline deadline) override;
  Result<sandbox::Trust> examine(const sandbox::ContainerRun& run, const std::string& path, std::string_view content,
                                 Deadline deadline) override;

 private:
  Result<nlohmann::json> inspect_or_create(Deadline deadline);
  Result<void> start(const std::string& id, Deadline deadline);
  /// True if another process started the container, or is removing it.
  bool is_no_longer_stopped(const std::string& id, Deadline deadline);
  /// Identifies the run of a container that was started.
  [[nodiscard]] Result<sandbox::ContainerRun> run_of(const nlohmann::json& container) const;

  Engine& m_engine;
  ContainerPolicy m_policy;
  Log& m_log;
};

}  // namespace dockbridge::docker
