#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/change/change_answer.hpp"
#include "agent/files/change/change_committer.hpp"
#include "agent/files/change/spare_file.hpp"
#include "agent/files/change/staged_content.hpp"
#include "agent/files/file_space.hpp"
#include "agent/files/text/edit.hpp"
#include "error/error.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::agent {

using wire::ChangeRequest;
using wire::NewContent;

/// Changes files. At any moment a file has its old or its new content, no change by others is overwritten unread, and
/// every change can be undone. One thread, one change at a time. Other processes may change files at the same time.
class FileChanger {
 public:
  /// Recovers what killed processes have left unfinished. With `may_prepare`, spare files are used.
  static Result<FileChanger> open(int state_fd, bool may_prepare = SpareFile::is_harmless());

  Result<ChangeAnswer> write(const FileSpace& space, const ChangeRequest& request, const NewContent& content);
  Result<ChangeAnswer> edit(const FileSpace& space, const ChangeRequest& request, std::span<const TextEdit> edits);
  /// Edits several files, all or none. The answers are in the order of the files.
  Result<std::vector<ChangeAnswer>> edit_all(const FileSpace& space, const wire::FileEditSetRequest& set);
  /// Restores the content before the newest change, or before the one with this id or the start of its digits.
  Result<ChangeAnswer> undo(const FileSpace& space, const ChangeRequest& request,
                            const std::optional<std::string>& change);

  /// Collects a content that is too large for one message. `write_staged` makes it the content of the file.
  Result<void> stage(const FileSpace& space, const std::string& path, std::string_view bytes, bool first);
  /// `content` has the encoding and mode, and no bytes.
  Result<ChangeAnswer> write_staged(const FileSpace& space, const ChangeRequest& request, const NewContent& content);
  void abandon_staged() { m_staged.reset(); }

  /// The content that `owner` last read or wrote.
  [[nodiscard]] std::optional<SeenContent> last_seen(const std::string& owner, const std::string& path) const {
    return m_committer.history().last_seen(owner, path);
  }
  /// Records that `owner` has received this content. An empty revision is ignored. `whole` is the content, if it is
  /// known.
  void note_seen(const std::string& owner, const std::string& path, const SeenContent& seen,
                 std::optional<std::string> whole);

  /// Does the work that a reply does not need. To be called after the reply was sent. The next request calls it
  /// otherwise.
  void run_deferred_work() { m_committer.deferred().run(m_committer.writer()); }
  /// Releases the spare file. To be called after a while without requests.
  void rest() { m_committer.writer().spare().drop(); }

 private:
  FileChanger(int state_fd, ContentStore store, bool may_prepare)
      : m_state_fd(state_fd), m_committer(state_fd, std::move(store), may_prepare) {}
  /// The current state of a file that its owner may write as a whole.
  Result<CurrentFile> find_writable(const FileSpace& space, const ChangeRequest& request);

  int m_state_fd;
  ChangeCommitter m_committer;
  std::unique_ptr<StagedContent> m_staged;
};

}  // namespace dockbridge::agent
