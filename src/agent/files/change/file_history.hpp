#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "error/error.hpp"

namespace dockbridge::agent {

/// A change to a file by these tools.
struct FileChange {
  std::string id;
  std::string path;    ///< path without symbolic links
  std::string before;  ///< revision; empty: the file did not exist
  std::string after;   ///< revision; empty: the file was removed
  mode_t mode = 0;     ///< of the file before
};

/// A content of a file that an owner has seen.
struct SeenContent {
  static constexpr std::uint64_t k_all_lines = UINT64_MAX;

  std::string revision;
  std::uint64_t lines = k_all_lines;  ///< from the start on, without a gap
};

/// Records which content of which file each owner has seen, and all changes. Two logs in the state directory, shared by
/// all sessions, that lose their older half when they exceed a limit. So what an owner has read counts for the next
/// server, too.
class FileHistory {
 public:
  static constexpr std::size_t k_max_log_bytes = 512 * 1024;

  explicit FileHistory(int state_fd) : m_state_fd(state_fd) {}

  /// Records that `owner` has seen this content of the file. Costs one short write.
  void note_seen(const std::string& owner, const std::string& path, const SeenContent& seen) const;
  /// The content that `owner` has seen last.
  [[nodiscard]] std::optional<SeenContent> last_seen(const std::string& owner, const std::string& path) const;

  Result<void> note_change(const FileChange& change) const;
  /// The newest change of the file; with `id`, the newest whose id begins with it.
  [[nodiscard]] std::optional<FileChange> find_change(const std::string& path,
                                                      const std::optional<std::string>& id) const;
  static std::string new_change_id();

 private:
  Result<void> append(const char* log, const std::string& line) const;
  /// The rest of the last line that begins with `start`.
  [[nodiscard]] std::optional<std::string> last_line(const char* log, const std::string& start) const;
  [[nodiscard]] std::string lines_of(const char* log) const;

  int m_state_fd;
};

}  // namespace dockbridge::agent
