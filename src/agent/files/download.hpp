#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/files/file_space.hpp"
#include "agent/files/revision.hpp"
#include "util/clock.hpp"
#include "util/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// One open file, handed out from its start to its end without its holes. When all is out, the file is read once more
/// and must have the same revision: so what was handed out is one version, not a mixture. Bytes that are appended after
/// it was opened are not part of it. A pseudo file, whose size the kernel does not know, is read once and not checked.
class Download {
 public:
  struct Piece {
    std::uint64_t offset = 0;   ///< what lies between the previous piece and this one is a hole
    std::string bytes{};        ///< may be empty, if the hole is long or the check is under way
    std::uint64_t checked = 0;  ///< how far the check has come
    bool complete = false;      ///< everything is out, and checked
  };

  static Result<std::unique_ptr<Download>> open(const ResolvedFile& file);

  [[nodiscard]] std::uint64_t size() const { return m_size; }
  /// Works for about a second at most. Error `file_changed` if the file was written to meanwhile.
  Result<Piece> next(std::size_t most);
  /// Of what was handed out so far.
  [[nodiscard]] std::string revision() const { return m_sent.hash.revision(); }

 private:
  /// How far a pass through the file has come.
  struct Pass {
    std::uint64_t at = 0;
    RevisionHash hash{};
  };

  Download() = default;
  /// Takes in the hole that begins here, if one does, as far as there is time. False: it goes on.
  [[nodiscard]] Result<bool> skip_hole(Pass& pass, Deadline deadline) const;
  /// Takes in at most so many bytes, all of them data.
  [[nodiscard]] Result<std::string> read(Pass& pass, std::size_t most) const;
  Result<void> check(Deadline deadline);

  Fd m_file;
  std::string m_path;
  std::uint64_t m_size = 0;
  std::optional<std::string> m_whole;  ///< of a small file: what it held when it was opened
  bool m_is_pseudo = false;
  Pass m_sent;
  Pass m_checked;
};

}  // namespace dockbridge::agent
