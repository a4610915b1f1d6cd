#include "agent/files/change/deferred_work.hpp"

#include <fcntl.h>

#include <utility>

#include "util/temporary_name.hpp"

namespace dockbridge::agent {

void DeferredWork::store(const std::string& revision, std::string content) {
  if (content.size() <= ContentStore::k_max_remembered_bytes) {
    m_work.revision = revision;
    m_work.content = std::move(content);
  }
}

void DeferredWork::add_change(const CurrentFile& changed) {
  const int directory = changed.place.directory.get();
  if (changed.file) {
    m_work.replaced.reset(::fcntl(changed.file->handle.get(), F_DUPFD_CLOEXEC, 0));
    if (m_may_prepare) {
      // Opened again, because a duplicate would keep the lock on the directory.
      m_work.directory.reset(::openat(directory, ".", O_PATH | O_CLOEXEC));
    }
  }
  if (m_sweep.is_due(directory, Clock::now())) {
    m_work.swept.reset(::openat(directory, ".", O_PATH | O_CLOEXEC));
  }
}

void DeferredWork::run(FileWriter& writer) {
  const Work work = std::exchange(m_work, {});
  if (!work.revision.empty()) {
    // If this fails, a later conflict is still detected, but cannot be shown as a diff.
    (void)writer.store().put(work.revision, work.content);
  }
  if (work.swept) {
    remove_orphans(work.swept.get());
  }
  if (work.directory) {
    writer.spare().prepare(work.directory.get());
  }
}

}  // namespace dockbridge::agent
