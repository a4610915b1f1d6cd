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

/// New content on its way to a file: written beside it, then put in its place in one step, so that whoever looks sees
/// the old content or the new. Gone without a trace if it is not put there. Borrows the journal.
class TemporaryFile {
 public:
  /// In the directory of `place`, which has to outlive it; from the spare one if that is there.
  static Result<TemporaryFile> create(const FilePlace& place, WriteJournal& journal, SpareFile* spare = nullptr);
  ~TemporaryFile();
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;

  /// Whether `create` failed because no file can be made in that directory.
  static bool has_no_place(const Error& error) {
    return error.code == ErrorCode::no_permission || error.code == ErrorCode::read_only;
  }

  Result<void> append(std::string_view bytes);
  [[nodiscard]] int fd() const { return m_file.get(); }

  /// Owner, mode and extended attributes of the file that is to be replaced, as far as this user may; returns what
  /// could not be kept. A given mode is set instead.
  std::vector<std::string> resemble(const ResolvedFile* before, const std::optional<mode_t>& mode);
  /// Puts it in its place and returns when that is on disk. Error `file_changed` if what is there is not `before`
  /// (none: nothing) any more; `is_busy` if what is there cannot be replaced, only written to.
  Result<void> publish(const ResolvedFile* before);

 private:
  TemporaryFile(const FilePlace& place, WriteJournal& journal, std::string name, Fd file);

  const FilePlace* m_place;
  WriteJournal* m_journal;
  std::string m_name;
  Fd m_file;
};

}  // namespace dockbridge::agent
