#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge {

/// Identifies a file independently of its name. Unique only while the file is kept open.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileIdentity&) const = default;
};

/// An absolute path, resolved one component at a time. Records every symbolic link that was followed and the
/// directories that hold it. So a caller can check whether a process with write access to certain directories could
/// have redirected the path.
class PathWalk {
 public:
  /// Follows at most 40 links and holds at most 256 directories. Error `io_error` if the path does not exist.
  static Result<PathWalk> to(const std::string& path);

  /// A descriptor opened with O_PATH.
  [[nodiscard]] const Fd& fd() const { return m_fd; }
  [[nodiscard]] Fd take_fd() { return std::move(m_fd); }
  [[nodiscard]] const FileIdentity& identity() const { return m_identity; }
  [[nodiscard]] bool is_directory() const { return m_is_directory; }
  [[nodiscard]] bool has_links() const { return !m_links.empty(); }

  /// The first followed link that lies in one of these directories, at any depth.
  [[nodiscard]] std::optional<std::string> link_inside(const std::vector<std::string>& directories) const;
  /// Whether the file is one of these directories, lies in one, or is reached through a link in one.
  [[nodiscard]] bool depends_on(const std::vector<std::string>& directories) const;

 private:
  struct Position {
    std::string path;                 ///< without links; ends with a slash if the file itself is in `above`
    std::vector<FileIdentity> above;  ///< the directories that hold it, up to the root
  };

  PathWalk() = default;
  static bool is_inside(const Position& position, const std::vector<std::string>& directories);

  Fd m_fd;
  FileIdentity m_identity;
  bool m_is_directory = false;
  Position m_end;
  std::vector<Position> m_links;
};

}  // namespace dockbridge
