#pragma once

#include <chrono>
#include <vector>

#include "util/clock.hpp"
#include "util/path_walk.hpp"

namespace dockbridge::agent {

/// Decides when a directory that was written to is searched for orphaned temporary files: at the first write, and again
/// when those that were too young then have become old enough. The journal that names them may be gone with an earlier
/// container. Does no sweeping itself.
class OrphanSweep {
 public:
  /// True counts as a sweep.
  bool is_due(int directory_fd, Clock::time_point now);

 private:
  struct Swept {
    FileIdentity directory;
    Clock::time_point at;
  };
  std::vector<Swept> m_swept;  ///< the latest directories, bounded
};

}  // namespace dockbridge::agent
