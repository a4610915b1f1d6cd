#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/files/file_space.hpp"
#include "agent/files/revision.hpp"
#include "error/error.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Reads one open file from its start to its end and skips its holes. At the end, the file is read a second time and
/// must have the same revision. So all pieces come from one version of the file. Bytes that are appended after the file
/// was opened are not part of it. A pseudo file, whose size the kernel does not report, is read once and not checked.
class Download {
 public:
  struct Piece {
    std::uint64_t offset = 0;   ///< the bytes between the previous piece and this one are a hole
    std::string bytes{};        ///< empty during a long hole or the check
    std::uint64_t checked = 0;  ///< number of bytes that the check has compared
    bool complete = false;      ///< all bytes were returned and checked
  };

  static Result<std::unique_ptr<Download>> open(const ResolvedFile& file);

  [[nodiscard]] std::uint64_t size() const { return m_size; }
  /// Works for about a second at most. Error `file_changed` if the file was written to during the copy.
  Result<Piece> next(std::size_t most);
  /// Revision of the bytes returned so far.
  [[nodiscard]] std::string revision() const { return m_sent.hash.revision(); }

 private:
  /// Progress of one pass through the file.
  struct Pass {
    std::uint64_t at = 0;
    RevisionHash hash{};
  };

  Download() = default;
  /// Hashes the hole at the current position, if there is one, until the deadline. False if the hole is not finished.
  [[nodiscard]] Result<bool> skip_hole(Pass& pass, Deadline deadline) const;
  /// Reads and hashes at most `most` bytes of data, up to the next hole.
  [[nodiscard]] Result<std::string> read(Pass& pass, std::size_t most) const;
  Result<void> check(Deadline deadline);

  Fd m_file;
  std::string m_path;
  std::uint64_t m_size = 0;
  std::optional<std::string> m_whole;  ///< content of a small file when it was opened
  bool m_is_pseudo = false;
  Pass m_sent;
  Pass m_checked;
};

}  // namespace dockbridge::agent
