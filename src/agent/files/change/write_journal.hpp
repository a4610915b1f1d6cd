#pragma once

#include <span>
#include <string>

#include "agent/files/change/content_store.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// One file of several that are changed together. Both contents are in the store.
struct SetEntry {
  std::string path;    ///< the real one
  std::string before;  ///< revision
  std::string after;   ///< revision
};

/// Remembers on disk what a process is about to leave half done, so that the next one can tidy up if it is killed:
/// a temporary file, a file that is written in place, or several files that change together. One thing at a time. The
/// lock on it says that its process lives.
class WriteJournal {
 public:
  static Result<WriteJournal> open(int state_fd);
  ~WriteJournal();
  WriteJournal(WriteJournal&& other) noexcept;
  WriteJournal& operator=(WriteJournal&&) = delete;

  Result<void> begin_temporary(const std::string& path);
  /// Both contents are in the store: what was there is put back, if what is there then is a mixture of the two.
  Result<void> begin_in_place(const std::string& path, const std::string& before, const std::string& after);
  /// Files that shall all have their new content or all their old one. Without `done`, those that have the new one get
  /// the old one back.
  Result<void> begin_set(std::span<const SetEntry> entries);
  void done();
  /// Gives up what it tells of, which is then for the next process. Nothing more can be noted.
  void leave() { m_file.reset(); }

  /// Gives a file its old content back if it has the new one, or a mixture of both. What others have made of it is left
  /// alone. Error `no_backup` if the store does not have both contents any more.
  static Result<void> put_back(const SetEntry& entry, ContentStore& store);

  /// Whether some process left something behind.
  static bool has_leftovers(int state_fd);
  /// Whether a process that lives, or has not finished dying, is at a change that it could leave half done. Temporary
  /// files do not count.
  static bool is_change_under_way(int state_fd);
  /// Removes temporary files, and puts back what was only half written in place; what cannot be written now stays
  /// noted. Waits up to two seconds for changes that are under way, because a killed process may still hold its lock.
  static void recover(int state_fd, ContentStore& store);

 private:
  WriteJournal(int state_fd, std::string name, Fd file);
  Result<void> note(const std::string& line);

  int m_state_fd;
  std::string m_name;
  Fd m_file;
};

}  // namespace dockbridge::agent
