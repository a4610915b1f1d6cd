#pragma once

#include <optional>
#include <string>

#include "sandbox/channel.hpp"

namespace dockbridge::sandbox {

/// Container runs whose agent passed an examination, recorded on the host. A later server starts that agent without
/// examining it again, which saves about 50 ms. A missing or unreadable record costs an examination and nothing else.
///
/// One file per container and agent version. A record is ignored if another user, or the container itself, could have
/// written it.
class TrustedRuns {
 public:
  /// `directory` is made when it is first needed. Empty means that nothing is recorded.
  explicit TrustedRuns(std::string directory) : m_directory(std::move(directory)) {}

  /// Path of the agent `agent_name` that is trusted in this run; nullopt if there is no record of it.
  [[nodiscard]] std::optional<std::string> find(const ContainerRun& run, const std::string& agent_name) const;
  /// Records the agent at `path`, and removes records that are a month old.
  void add(const ContainerRun& run, const std::string& path) const;

 private:
  std::string m_directory;
};

}  // namespace dockbridge::sandbox
