#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/content_store.hpp"
#include "agent/files/diff.hpp"
#include "agent/files/edit.hpp"
#include "agent/files/encoding.hpp"
#include "agent/files/file_history.hpp"
#include "agent/files/file_space.hpp"
#include "agent/files/temporary_file.hpp"
#include "agent/files/text_page.hpp"
#include "agent/files/write_journal.hpp"
#include "util/error.hpp"

namespace dockbridge::agent {

/// Whose change it is, and what they think the file holds.
struct ChangeRequest {
  std::string path;
  std::string owner;
  std::optional<std::string> expected;  ///< a revision; none: what the owner saw there last
};

struct NewContent {
  std::string_view bytes;
  bool is_text = true;               ///< UTF-8, to be stored in the encoding that is given, or that the file has
  std::optional<Encoding> encoding;  ///< for text
  std::optional<mode_t> mode;        ///< none: as it was
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
  static Result<FileChanger> open(int state_fd);

  Result<ChangeAnswer> write(const FileSpace& space, const ChangeRequest& request, const NewContent& content);
  Result<ChangeAnswer> edit(const FileSpace& space, const ChangeRequest& request, std::span<const Edit> edits);
  /// Brings back what was there before the newest change, or the one with this id.
  Result<ChangeAnswer> undo(const FileSpace& space, const ChangeRequest& request,
                            const std::optional<std::string>& change);

  /// A content too large for one message: it is gathered beside the file, and takes its place with `write_staged`.
  Result<void> stage(const FileSpace& space, const std::string& path, std::string_view bytes, bool first);
  /// `content` tells what it is, and has no bytes itself.
  Result<ChangeAnswer> write_staged(const FileSpace& space, const ChangeRequest& request, const NewContent& content);
  void abandon_staged();

  /// `owner` has been shown this content.
  void note_seen(const std::string& owner, const std::string& path, const FileContent& content);

 private:
  /// A file as it is before a change, locked against other changes of this kind.
  struct Current {
    std::optional<ResolvedFile> file;  ///< none: there is none
    FilePlace place;
    FileContent content;
  };
  struct Staged {
    FilePlace place;
    std::optional<TemporaryFile> file;
  };

  explicit FileChanger(int state_fd, ContentStore store);
  Result<WriteJournal*> journal();
  enum class Absent { is_an_error, is_fine, is_to_be_made };
  static Result<Current> look_up(const FileSpace& space, const std::string& path, Absent absent);
  /// How a text shall be stored: as is asked for, or as the file is.
  static Encoding encoding_for(const NewContent& content, const Current& current);
  /// The revision that the owner goes by; error `not_read` if there is none.
  Result<std::string> expected_revision(const ChangeRequest& request, const Current& current) const;
  Result<void> expect_unchanged(const ChangeRequest& request, const Current& current) const;
  [[nodiscard]] std::optional<Diff> changes_since(const std::string& revision, const Current& current) const;
  /// Keeps a content that an owner knows, if it is not long.
  void remember(std::string_view content);
  [[nodiscard]] Error changed_since_read(const std::string& revision, const Current& current) const;
  /// Keeps what is there, for undoing; returns the change as it will be recorded.
  FileChange keep_before(const Current& current, ChangeAnswer& answer);
  Result<void> replace(const Current& current, std::string_view bytes, const std::optional<mode_t>& mode,
                       ChangeAnswer& answer);
  Result<void> write_in_place(const Current& current, std::string_view bytes, const std::optional<mode_t>& mode,
                              ChangeAnswer& answer);
  Result<ChangeAnswer> commit(const ChangeRequest& request, const Current& current, std::string_view bytes,
                              const std::optional<mode_t>& mode, ChangeAnswer answer);
  void record(const ChangeRequest& request, FileChange change, ChangeAnswer& answer);
  Result<ChangeAnswer> remove(const ChangeRequest& request, const Current& current);

  int m_state_fd;
  ContentStore m_store;
  FileHistory m_history;
  std::unique_ptr<WriteJournal> m_journal;  // made when it is first needed
  std::unique_ptr<Staged> m_staged;
};

}  // namespace dockbridge::agent
