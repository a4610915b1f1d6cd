#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/files/change/change_answer.hpp"
#include "agent/files/change/change_guard.hpp"
#include "agent/files/change/content_store.hpp"
#include "agent/files/change/current_file.hpp"
#include "agent/files/change/deferred_work.hpp"
#include "agent/files/change/file_history.hpp"
#include "agent/files/change/file_writer.hpp"
#include "agent/files/change/temporary_file.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// Carries out a change to one file: stores the old content for an undo, writes the new one, records the change.
/// Does not check whether the owner may make the change; see ChangeGuard.
class ChangeCommitter {
 public:
  ChangeCommitter(int state_fd, ContentStore store, bool may_prepare)
      : m_writer(state_fd, std::move(store)), m_history(state_fd), m_deferred(may_prepare) {}

  /// The parts, for changes of several files and for reading.
  FileWriter& writer() { return m_writer; }
  [[nodiscard]] const FileHistory& history() const { return m_history; }
  DeferredWork& deferred() { return m_deferred; }
  ChangeGuard guard() { return {m_history, m_writer.store()}; }

  /// `staged` is a temporary file beside the target that has the content; null: the content is written to a new one.
  Result<ChangeAnswer> commit(const std::string& owner, const CurrentFile& current, const NewBytes& content,
                              const std::optional<mode_t>& mode, ChangeAnswer answer, TemporaryFile* staged = nullptr);
  /// Removes the file, to undo its creation.
  Result<ChangeAnswer> remove(const std::string& owner, const CurrentFile& current);

  /// Stores the current content for an undo. Returns the change as it will be recorded, without an id if that failed.
  FileChange keep_before(const CurrentFile& current, ChangeAnswer& answer);
  void record(const std::string& owner, FileChange change, ChangeAnswer& answer) const;

 private:
  FileWriter m_writer;
  FileHistory m_history;
  DeferredWork m_deferred;
};

}  // namespace dockbridge::agent
