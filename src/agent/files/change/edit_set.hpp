#pragma once

#include <span>
#include <vector>

#include "agent/files/change/change_answer.hpp"
#include "agent/files/change/change_committer.hpp"
#include "agent/files/change/prepared_edit.hpp"
#include "agent/files/file_space.hpp"
#include "error/error.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::agent {

/// One request that edits several files, all or none. If a write fails, or the process is killed, all files get their
/// old content back. All edits are prepared before the first file is written.
class EditSet {
 public:
  EditSet(int state_fd, ChangeCommitter& committer, const wire::FileEditSetRequest& request)
      : m_state_fd(state_fd),
        m_committer(committer),
        m_request(request),
        m_mode{request.preview, request.is_replacement} {}

  /// The answers are in the order of the files.
  Result<std::vector<ChangeAnswer>> run(const FileSpace& space);

 private:
  Result<std::vector<PreparedEdit>> prepare(const FileSpace& space, LockedDirectories& locked);
  std::vector<ChangeAnswer> preview(std::vector<PreparedEdit>& prepared);
  /// Stores both contents of each file. Returns the changes as they will be recorded.
  Result<std::vector<FileChange>> store_contents(std::vector<PreparedEdit>& prepared);
  Result<void> write(std::vector<PreparedEdit>& prepared, std::span<const FileChange> changes);
  /// Restores the files that were written before an error. Returns the error with the outcome.
  Error roll_back(std::span<const SetEntry> entries, WriteJournal& journal, Error error);

  int m_state_fd;
  ChangeCommitter& m_committer;
  const wire::FileEditSetRequest& m_request;
  EditSetMode m_mode;
};

}  // namespace dockbridge::agent
