#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/connection.hpp"
#include "sandbox/trusted_runs.hpp"
#include "util/clock.hpp"
#include "wire/retention.hpp"

namespace dockbridge::sandbox {

/// Starts the agent in a running container and connects to it. The agent is put there first if it is absent.
///
/// A less privileged user of the container must not be able to have another program started in the agent's place. So
/// before the first start in a run of the container, the agent's file and every directory above it are examined through
/// the engine. A path that passes stays trusted for the rest of the run, because only root or the agent's own user can
/// change it. `TrustedRuns` passes the result to other servers. Used by one thread at a time.
class AgentLauncher {
 public:
  /// `workdir` is the last resort, for containers whose root file system is read-only.
  AgentLauncher(Channel& channel, std::string workdir, wire::Retention retention, TrustedRuns trusted_runs)
      : m_channel(channel),
        m_workdir(std::move(workdir)),
        m_retention(retention),
        m_trusted_runs(std::move(trusted_runs)) {}

  Result<std::unique_ptr<Connection>> launch(const ContainerRun& run, Deadline deadline);

 private:
  struct Place;
  struct Trusted {
    ContainerRun run;
    std::string path;
  };

  [[nodiscard]] std::vector<Place> places() const;
  /// The agent that was trusted earlier in this run, by this server or another.
  [[nodiscard]] std::optional<Trusted> recall(const ContainerRun& run) const;
  /// Error `agent_not_placed` if another place may be usable.
  Result<std::unique_ptr<Connection>> launch_at(const Place& place, const ContainerRun& run, Deadline deadline);
  Result<std::unique_ptr<Connection>> start(const std::string& path, const ContainerRun& run, Deadline deadline);

  Channel& m_channel;
  std::string m_workdir;
  wire::Retention m_retention;
  TrustedRuns m_trusted_runs;
  std::optional<Trusted> m_trusted;
};

}  // namespace dockbridge::sandbox
