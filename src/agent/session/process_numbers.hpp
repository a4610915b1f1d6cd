#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "util/fd.hpp"

namespace dockbridge::agent {

/// Numbers the processes of each owner, starting with 1. No number is reused, even after its process has expired.
///
/// Each owner has an index in the state directory, an append-only file of slots that hold process ids. The number of a
/// process is that of its slot. The kernel serializes appends, so sessions that start processes at the same moment need
/// no lock. After the first process of an owner, a number costs an append and creates no inode.
///
/// An index is not trusted: a process has a number only if its record has it too.
class ProcessNumbers {
 public:
  explicit ProcessNumbers(int directory_fd) : m_directory_fd(directory_fd) {}

  /// Assigns the owner's next number to the process, a number greater than `above`. The host may know of higher numbers
  /// than a state directory that was lost with the container's memory. Returns 0 if no number can be stored.
  std::uint64_t assign(const std::string& owner, const std::string& process, std::uint64_t above = 0);
  /// The ids of processes that may have this number.
  std::vector<std::string> candidates(const std::string& owner, std::uint64_t number);
  /// Whether the process is in the owner's index, also after it has expired. Reads the whole index.
  bool has(const std::string& owner, const std::string& process);
  /// The highest number assigned so far; 0 if none.
  std::uint64_t highest(const std::string& owner);

 private:
  /// Descriptor of the owner's index; -1 if it cannot be opened.
  int index_of(const std::string& owner, bool may_create);

  int m_directory_fd;
  std::map<std::string, Fd> m_indexes;  ///< by owner; a bounded cache of open files
};

}  // namespace dockbridge::agent
