#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/files/change/temporary_file.hpp"
#include "agent/files/change/write_journal.hpp"
#include "agent/files/file_space.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// A content that is too large for one message. It is collected in a temporary file with its own journal, because the
/// writer's journal is needed for other changes. Removes the temporary file if it was not published.
class StagedContent {
 public:
  /// Creates the temporary file beside `path`, or in the state directory if the directory of `path` does not permit it.
  static Result<std::unique_ptr<StagedContent>> create(const FileSpace& space, const std::string& path, int state_fd);

  Result<void> append(std::string_view bytes) { return m_file->append(bytes); }
  /// The file that it is for.
  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] int fd() const { return m_file->fd(); }
  /// The temporary file if it is beside its target; null otherwise.
  TemporaryFile* beside_target() { return m_place.path == m_path ? &*m_file : nullptr; }

 private:
  StagedContent(FilePlace place, WriteJournal journal)
      : m_path(place.path), m_journal(std::move(journal)), m_place(std::move(place)) {}
  Result<void> create_file();

  std::string m_path;
  WriteJournal m_journal;
  FilePlace m_place;
  std::optional<TemporaryFile> m_file;  // borrows the two above
};

}  // namespace dockbridge::agent
