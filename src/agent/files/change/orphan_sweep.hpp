#pragma once

#include <vector>

#include "util/clock.hpp"
#include "util/path_walk.hpp"

namespace dockbridge::agent {

/// Decides when a directory that was written to is searched for orphaned temporary files: at the first write, and again
/// once files that were too young at that time are old enough. The journal that names the files may have been lost with
/// an earlier container. Does not remove files itself.
class OrphanSweep {
 public:
  /// Records a sweep at `now` if it returns true.
  bool is_due(int directory_fd, Clock::time_point now);

 private:
  struct Swept {
    FileIdentity directory;
    Clock::time_point at;
  };
  std::vector<Swept> m_swept;  ///< the most recent directories, bounded in number
};

}  // namespace dockbridge::agent
