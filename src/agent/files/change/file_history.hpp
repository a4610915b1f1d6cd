#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// A change that the tools made to a file.
struct FileChange {
  std::string id;      ///< how people name it
  std::string path;    ///< the real one
  std::string before;  ///< revision; empty: there was no file
  std::string after;   ///< revision; empty: the file was removed
  mode_t mode = 0;     ///< of the file before
};

/// Who has seen which content of which file, and what was changed: two files of lines in the state directory, shared by
/// all sessions, that lose their older half when they grow too long. So what an owner has read counts for the next
/// server too.
class FileHistory {
 public:
  static constexpr std::size_t k_most_log_bytes = 512 * 1024;

  explicit FileHistory(int state_fd) : m_state_fd(state_fd) {}

  /// `owner` knows that the file has this content. It costs one short write.
  void note_seen(const std::string& owner, const std::string& path, const std::string& revision) const;
  /// What `owner` saw there last.
  [[nodiscard]] std::optional<std::string> last_seen(const std::string& owner, const std::string& path) const;

  Result<void> note_change(const FileChange& change) const;
  /// The newest change of the file; with `id`, the newest whose id begins with it.
  [[nodiscard]] std::optional<FileChange> find_change(const std::string& path,
                                                      const std::optional<std::string>& id) const;
  static std::string new_change_id();

 private:
  Result<void> append(const char* log, const std::string& line) const;
  /// The last line that begins with `start`, without it.
  [[nodiscard]] std::optional<std::string> last_line(const char* log, const std::string& start) const;
  [[nodiscard]] std::string lines_of(const char* log) const;

  int m_state_fd;
};

}  // namespace dockbridge::agent
