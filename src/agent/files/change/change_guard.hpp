#pragma once

#include <optional>
#include <string>

#include "agent/files/change/content_store.hpp"
#include "agent/files/change/current_file.hpp"
#include "agent/files/change/file_history.hpp"
#include "agent/files/text/diff.hpp"
#include "error/error.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::agent {

/// Contents up to this size are compared in a diff.
inline constexpr std::size_t k_max_diffed_bytes = 4ULL * 1024 * 1024;

/// Options of a request that edits several files.
struct EditSetMode {
  bool preview = false;         ///< nothing is changed; the files count as read for a later call of the same kind
  bool is_replacement = false;  ///< the files are the result of a search: those without a match are left out
};

/// Decides whether an owner may change a file: only if it has read the content that is there, and all of it to write
/// the whole file. Does not change files. Borrows history and store.
class ChangeGuard {
 public:
  ChangeGuard(const FileHistory& history, ContentStore& store) : m_history(history), m_store(store) {}

  /// The revision that the owner's change is based on; error `not_read` if there is none. `mode` is that of edits. It
  /// is null if the whole file is written, for which a preview or a part of the file does not count.
  Result<std::string> expected_revision(const wire::ChangeRequest& request, const CurrentFile& current,
                                        const EditSetMode* mode = nullptr) const;
  /// Error `file_changed` with a diff if the file does not have the expected revision.
  Result<void> expect_unchanged(const wire::ChangeRequest& request, const CurrentFile& current) const;
  [[nodiscard]] Error changed_since_read(const std::string& revision, const CurrentFile& current) const;
  /// nullopt if one of the contents is too large, not text, or not stored any more.
  [[nodiscard]] std::optional<Diff> changes_since(const std::string& revision, const CurrentFile& current) const;

  void note_preview(const std::string& owner, const EditSetMode& mode, const CurrentFile& current) const;

 private:
  const FileHistory& m_history;
  ContentStore& m_store;
};

}  // namespace dockbridge::agent
