#pragma once

#include <span>
#include <string>

#include "agent/files/change/content_store.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// One file of several that are changed together. Both contents are in the store.
struct SetEntry {
  std::string path;    ///< path without symbolic links
  std::string before;  ///< revision
  std::string after;   ///< revision
};

/// Names on disk what a process would leave unfinished if it was killed, so that the next process can recover: a
/// temporary file, a file that is written in place, or several files that change together. One entry at a time. The
/// lock on it shows that its process is alive.
class WriteJournal {
 public:
  static Result<WriteJournal> open(int state_fd);
  ~WriteJournal();
  WriteJournal(WriteJournal&& other) noexcept;
  WriteJournal& operator=(WriteJournal&&) = delete;

  Result<void> begin_temporary(const std::string& path);
  /// Both contents are in the store. Recovery restores the old one if the file has a mixture of both.
  Result<void> begin_in_place(const std::string& path, const std::string& before, const std::string& after);
  /// Files that get their new content together. Without `done`, recovery restores the old content of those that have
  /// the new one.
  Result<void> begin_set(std::span<const SetEntry> entries);
  void done();
  /// Leaves the entry for recovery by the next process. The journal cannot be used after this.
  void leave() { m_file.reset(); }

  /// Restores the old content of a file if it has the new one, or a mixture of both. A file that others have changed is
  /// left alone. Error `no_backup` if the store does not have both contents any more.
  static Result<void> restore(const SetEntry& entry, ContentStore& store);

  /// Whether a killed process has left a journal.
  static bool has_leftovers(int state_fd);
  /// Whether a process that is alive, or still exiting, is in the middle of a change. Temporary files do not count.
  static bool is_change_under_way(int state_fd);
  /// Removes temporary files and restores files that were written in part. Entries that cannot be restored now are
  /// kept. Waits up to two seconds for changes that are under way, because a killed process may still hold its lock.
  static void recover(int state_fd, ContentStore& store);

 private:
  WriteJournal(int state_fd, std::string name, Fd file);
  Result<void> write(const std::string& entry);

  int m_state_fd;
  std::string m_name;
  Fd m_file;
};

}  // namespace dockbridge::agent
