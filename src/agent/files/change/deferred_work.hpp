#pragma once

#include <string>

#include "agent/files/change/current_file.hpp"
#include "agent/files/change/file_writer.hpp"
#include "agent/files/change/orphan_sweep.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Work of the latest request that its reply does not need: it runs after the reply was sent.
class DeferredWork {
 public:
  /// With `may_prepare`, a spare file is prepared in the directory of the latest change.
  explicit DeferredWork(bool may_prepare) : m_may_prepare(may_prepare) {}

  /// Stores a content, so that later changes by others can be shown. Large ones are ignored.
  void store(const std::string& revision, std::string content);
  /// Schedules the work after a change to the file: freeing its old content, a spare file, and a sweep.
  void add_change(const CurrentFile& changed);
  void run(FileWriter& writer);

 private:
  struct Work {
    std::string revision;  ///< of `content`; empty: nothing to store
    std::string content;
    Fd replaced;   ///< a file without a name: closing it frees its blocks, which takes a while
    Fd directory;  ///< a spare file is prepared there; empty: nowhere
    Fd swept;      ///< orphaned temporary files are removed there; empty: nowhere
  };

  bool m_may_prepare;
  OrphanSweep m_sweep;
  Work m_work;
};

}  // namespace dockbridge::agent
