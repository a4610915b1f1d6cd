#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "util/path_walk.hpp"

namespace dockbridge::tools {

/// A path on the host, relative to an allowed directory. Borrows the directory.
struct HostPlace {
  int directory = -1;
  std::string way;
};

Error host_error(const std::string& path, int number);

/// The directories of --allow-host-path. Each is resolved once, at start, and kept open, so it cannot be redirected
/// later. A symbolic link in its path is followed only if it lies outside the directories that the container can write
/// to. Immutable; any thread may call.
class HostDirectories {
 public:
  /// Returns the host directories that the container can write to. Called only if a link was followed at start, because
  /// it may need the engine.
  using WritableMounts = std::function<Result<std::vector<std::string>>()>;

  /// `workspace`: the shared directory, which is known before the container exists; empty if there is none.
  static Result<std::shared_ptr<const HostDirectories>> open(const std::vector<std::string>& paths,
                                                             const std::string& workspace);

  [[nodiscard]] const std::vector<std::string>& paths() const { return m_paths; }
  /// Finds the allowed directory that contains the path. The caller resolves the rest beneath it. Error
  /// `host_path_changed` if the directory's path now names another directory, `unsafe_host_path` if it was reached
  /// through a link that the container can change.
  [[nodiscard]] Result<HostPlace> place(const std::string& path, const WritableMounts& writable_mounts) const;

 private:
  HostDirectories() = default;

  std::vector<std::string> m_paths;  ///< as given
  std::vector<PathWalk> m_walks;     ///< one for each path
};

}  // namespace dockbridge::tools
