#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/record.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "wire/retention.hpp"

namespace dockbridge::agent {

/// The error for a process that this owner does not have.
Error no_such_process(const std::string& process);

/// The directory in the container that outlives sessions. Each session has a journal in it. A process's id is one more
/// name for the journal that tells of it; what else belongs to a process has that name and a suffix. A journal is gone
/// with the last of its processes.
class StateDirectory {
 public:
  /// The first place that can be written, private to this user.
  static Result<StateDirectory> open();
  /// This place and no other.
  static Result<StateDirectory> open(const std::string& path);

  [[nodiscard]] int fd() const { return m_fd.get(); }
  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return m_path + "/" + name; }

  /// Creates a journal before it is needed, with disk space reserved for the lines of its processes.
  void prepare();
  void let_go_of_journal();
  /// Makes a process known by its first line. Returns the journal, for its keeper to add to.
  Result<Fd> create(const std::string& process, const Meta& meta);
  /// The process of that id or, if it was started in another run of the container, of one that ends like it; also if it
  /// has expired. Ids of processes whose calls have the same idempotency key do.
  [[nodiscard]] std::optional<std::string> namesake(const std::string& process) const;
  /// Error `process_expired` if there was one, `no_such_process` if not.
  [[nodiscard]] Result<Record> read(const std::string& process) const;
  /// Of all processes, in no order. Holds the records of one journal at a time.
  void visit(const RecordVisitor& visitor) const;
  void remove(const std::string& process) const;

  /// What the output of all processes takes up on disk.
  [[nodiscard]] std::uint64_t stored_bytes() const;
  /// Removes what finished processes left behind, oldest first; if what the others have stored is too much by itself,
  /// their keepers are told to store less. Does nothing while another session does it.
  void prune(const wire::Retention& retention, const Moment& now) const;

 private:
  /// Ensures that the keepers of all processes in the journal, and of one more, can append their lines even when the
  /// disk is full. Error if the disk is full already.
  Result<void> reserve();
  void trim(const std::string& process, std::uint64_t bytes, const Moment& now) const;
  void remove_leftovers(std::int64_t oldest) const;
  /// Ids that were pruned, as long as there are not too many of them.
  void note_expired(const std::vector<std::string>& processes) const;
  [[nodiscard]] bool is_expired(const std::string& process) const;
  [[nodiscard]] std::optional<milliseconds> finished_ago(const std::string& process, const Result<Record>& record,
                                                         const Moment& now) const;

  std::string m_path;
  Fd m_fd;
  std::string m_journal_name;  ///< its first name; the ids of its processes are the others
  Fd m_journal;
  std::int64_t m_reserved_end = 0;    ///< end of the disk space reserved for the journal
  std::int64_t m_journal_starts = 0;  ///< number of processes in the journal
};

}  // namespace dockbridge::agent
