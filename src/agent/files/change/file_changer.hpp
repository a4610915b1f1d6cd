#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/change/content_store.hpp"
#include "agent/files/change/current_file.hpp"
#include "agent/files/change/file_history.hpp"
#include "agent/files/change/file_writer.hpp"
#include "agent/files/change/orphan_sweep.hpp"
#include "agent/files/change/spare_file.hpp"
#include "agent/files/change/temporary_file.hpp"
#include "agent/files/change/write_journal.hpp"
#include "agent/files/file_space.hpp"
#include "agent/files/text/diff.hpp"
#include "agent/files/text/edit.hpp"
#include "agent/files/text/encoding.hpp"
#include "agent/files/text/text_page.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"
#include "wire/file_change_messages.hpp"

namespace dockbridge::agent {

using wire::ChangeRequest;
using wire::NewContent;

/// What becomes of the edits of several files.
struct EditSetMode {
  bool preview = false;         ///< nothing is changed; the files count as read for a later call of the same kind
  bool is_replacement = false;  ///< over files that were searched for: those without a match are left out
};

struct ChangeAnswer {
  std::string path;  ///< the real one
  std::string revision;
  std::string before;  ///< revision; empty: the file is new
  std::string change;  ///< id, for undoing it; empty: it cannot be undone
  std::uint64_t size = 0;
  Encoding encoding = Encoding::utf8;
  std::vector<std::size_t> replacements;  ///< of each edit
  Diff diff;
  std::optional<Diff> since;       ///< what others had changed since the owner saw it
  std::vector<std::string> notes;  ///< what a person should know: not kept, written in place, and so on
};

/// Changes files so that at any moment they hold the old content or the new, nobody's work is overwritten unseen, and
/// every change can be undone. One thread, one change at a time; other processes may be at it too.
class FileChanger {
 public:
  /// Tidies up what a killed predecessor left behind.
  static Result<FileChanger> open(int state_fd, bool may_prepare = SpareFile::is_harmless());

  Result<ChangeAnswer> write(const FileSpace& space, const ChangeRequest& request, const NewContent& content);
  Result<ChangeAnswer> edit(const FileSpace& space, const ChangeRequest& request, std::span<const TextEdit> edits);
  /// Edits several files, all or none: whatever fails, and whenever this process is killed, they all get their old
  /// content back. Nothing is written before all edits are known to be possible. The answers are in the order of the
  /// files.
  Result<std::vector<ChangeAnswer>> edit_all(const FileSpace& space, const wire::FileEditSetRequest& set);
  /// Brings back what was there before the newest change, or the one with this id or the start of its digits.
  Result<ChangeAnswer> undo(const FileSpace& space, const ChangeRequest& request,
                            const std::optional<std::string>& change);

  /// A content too large for one message: it is gathered in a file of its own, and becomes the file's with
  /// `write_staged`.
  Result<void> stage(const FileSpace& space, const std::string& path, std::string_view bytes, bool first);
  /// `content` tells what it is, and has no bytes itself.
  Result<ChangeAnswer> write_staged(const FileSpace& space, const ChangeRequest& request, const NewContent& content);
  void abandon_staged();

  /// The revision that `owner` last read or wrote.
  [[nodiscard]] std::optional<std::string> last_seen(const std::string& owner, const std::string& path) const {
    return m_history.last_seen(owner, path);
  }
  /// `owner` has been shown the content with this revision (empty: it has none), which is `whole` if that is known.
  void note_seen(const std::string& owner, const std::string& path, const std::string& revision,
                 std::optional<std::string> whole);

  /// Does the work that an answer need not wait for. To be called after the answer was sent; the next request does it
  /// otherwise.
  void run_deferred_work();
  /// Lets go of what was prepared: to be called when nothing has come for a while.
  void rest() { m_writer.spare().drop(); }

 private:
  /// A content on its way, in a temporary file with a journal of its own, so that the writer's speaks of the rest.
  struct Staged {
    std::string path;  ///< of the file that it is for
    WriteJournal journal;
    FilePlace place;  ///< beside that, or the state directory
    std::optional<TemporaryFile> file;
  };

  /// An edit that is possible, and has not been written.
  struct PreparedEdit {
    CurrentFile current;
    std::string bytes;
    ChangeAnswer answer;
  };

  /// Work of the latest request that its answer need not wait for.
  struct DeferredWork {
    std::string revision;  ///< of a content that has yet to be remembered, so that later changes by others can be shown
    std::string content;
    Fd replaced;   ///< a file that has no name any more: letting go of it frees its blocks, which takes a while
    Fd directory;  ///< where that was, and where the next may be, if that is prepared for
    Fd swept;      ///< a directory whose orphaned temporary files are to be removed
  };

  FileChanger(int state_fd, ContentStore store, bool may_prepare);
  /// Under this name the history has what an owner was shown by a preview. It does not count for other calls.
  static std::string previewer(const std::string& owner, const EditSetMode& mode);
  void remember(const std::string& revision, std::string content);
  [[nodiscard]] Result<std::unique_ptr<Staged>> begin_staging(const FileSpace& space, const std::string& path) const;
  /// How a text shall be stored: as is asked for, or as the file is.
  static Encoding encoding_for(const NewContent& content, const CurrentFile& current);
  /// The revision that the owner goes by; error `not_read` if there is none. `mode` is that of edits; nullptr if the
  /// file is written as a whole, for which a preview does not count.
  Result<std::string> expected_revision(const ChangeRequest& request, const CurrentFile& current,
                                        const EditSetMode* mode = nullptr) const;
  Result<PreparedEdit> prepare_edit(const FileSpace& space, const ChangeRequest& request,
                                    std::span<const TextEdit> edits, const EditSetMode& mode = {},
                                    LockedDirectories* locked = nullptr);
  Result<std::vector<PreparedEdit>> prepare_all(const FileSpace& space, const wire::FileEditSetRequest& set,
                                                LockedDirectories& locked);
  /// Keeps both contents of each file; returns the changes as they will be recorded.
  Result<std::vector<FileChange>> keep_all(std::vector<PreparedEdit>& prepared);
  Result<void> write_all(std::vector<PreparedEdit>& prepared, std::span<const FileChange> changes);
  Result<void> expect_unchanged(const ChangeRequest& request, const CurrentFile& current);
  [[nodiscard]] std::optional<Diff> changes_since(const std::string& revision, const CurrentFile& current);
  [[nodiscard]] Error changed_since_read(const std::string& revision, const CurrentFile& current);
  /// Keeps what is there, for undoing; returns the change as it will be recorded.
  FileChange keep_before(const CurrentFile& current, ChangeAnswer& answer);
  Result<ChangeAnswer> commit(const ChangeRequest& request, const CurrentFile& current, const NewBytes& content,
                              const std::optional<mode_t>& mode, ChangeAnswer answer, TemporaryFile* staged = nullptr);
  void record(const ChangeRequest& request, FileChange change, ChangeAnswer& answer);
  Result<ChangeAnswer> remove(const ChangeRequest& request, const CurrentFile& current);

  int m_state_fd;
  FileWriter m_writer;
  FileHistory m_history;
  std::unique_ptr<Staged> m_staged;
  DeferredWork m_deferred;
  OrphanSweep m_sweep;
  bool m_may_prepare;
};

}  // namespace dockbridge::agent
