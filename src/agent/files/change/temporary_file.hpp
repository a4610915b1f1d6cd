#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/change/spare_file.hpp"
#include "agent/files/change/write_journal.hpp"
#include "agent/files/file_space.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// New content of a file, written to a temporary file beside it that replaces it atomically. Readers see the old
/// content or the new one. The temporary file is removed if it is not published. Borrows the journal.
class TemporaryFile {
 public:
  /// In the directory of `place`, which is borrowed. Uses the spare file if there is one.
  static Result<TemporaryFile> create(const FilePlace& place, WriteJournal& journal, SpareFile* spare = nullptr);
  ~TemporaryFile();
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;

  /// Whether `create` failed because the directory does not permit a new file.
  static bool is_not_permitted(const Error& error) {
    return error.code == ErrorCode::no_permission || error.code == ErrorCode::read_only;
  }

  Result<void> append(std::string_view bytes);
  [[nodiscard]] int fd() const { return m_file.get(); }

  /// Copies owner, mode and extended attributes of the file that is replaced. Returns what could not be copied. A given
  /// mode is set instead.
  std::vector<std::string> copy_metadata(const ResolvedFile* before, const std::optional<mode_t>& mode);
  /// Renames it to the target and returns when that is on disk. `before` is the file that is replaced; null: none.
  /// Error `file_changed` if the target is another one now; `is_busy` if it can be written but not replaced.
  Result<void> publish(const ResolvedFile* before);

 private:
  TemporaryFile(const FilePlace& place, WriteJournal& journal, std::string name, Fd file);

  const FilePlace* m_place;
  WriteJournal* m_journal;
  std::string m_name;
  Fd m_file;
};

}  // namespace dockbridge::agent
