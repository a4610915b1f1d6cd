#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/record.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Error for a process that does not exist or belongs to another owner.
Error no_such_process(const std::string& process);

/// The directory in the container that outlives sessions. Each session has a journal in it. The id of a process is
/// another name of the journal that holds its record. The other files of a process have its id and a suffix as their
/// names. A journal is removed together with its last process.
class StateDirectory {
 public:
  /// Opens the first directory that is writable and private to this user.
  static Result<StateDirectory> open();
  /// Opens this directory, or fails.
  static Result<StateDirectory> open(const std::string& path);

  [[nodiscard]] int fd() const { return m_fd.get(); }
  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return m_path + "/" + name; }

  /// Creates a journal before it is needed, with disk space reserved for the lines of its processes.
  void prepare();
  void release_journal();
  /// Records a process. Returns the journal, to which its keeper appends.
  Result<Fd> create(const std::string& process, const Meta& meta);
  /// The process with this id or, from another run of the container, with the same end of its id, even if it has
  /// expired. Such ids belong to calls with the same idempotency key.
  [[nodiscard]] std::optional<std::string> namesake(const std::string& process) const;
  /// Error `process_expired` if the process existed, `no_such_process` if not.
  [[nodiscard]] Result<Record> read(const std::string& process) const;
  /// Visits all processes, in no order. Holds the records of one journal at a time.
  void visit(const RecordVisitor& visitor) const;
  void remove(const std::string& process) const;

  /// The names of all files in the directory.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Whether this is the first name of another session's journal.
  [[nodiscard]] bool is_foreign_journal(const std::string& name) const;
  /// Stores the ids of pruned processes, up to a limit.
  void note_expired(const std::vector<std::string>& processes) const;

 private:
  /// Ensures that the keepers of all processes in the journal, and of one more, can append their lines even when the
  /// disk is full. Error if the disk is full already.
  Result<void> reserve();
  [[nodiscard]] bool is_expired(const std::string& process) const;

  std::string m_path;
  Fd m_fd;
  std::string m_journal_name;  ///< its first name; the others are the ids of its processes
  Fd m_journal;
  std::int64_t m_reserved_end = 0;    ///< end of the disk space reserved for the journal
  std::int64_t m_journal_starts = 0;  ///< number of processes in the journal
};

}  // namespace dockbridge::agent
