#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/error.hpp"

namespace dockbridge::docker {

struct TarEntry {
  std::string name;  ///< below 100 bytes; a final '/' makes it a directory
  unsigned mode = 0644;
  std::string_view content;
  std::uint64_t uid = 0;
};

/// An archive in the ustar format that is the same for the same entries.
std::string make_tar(const std::vector<TarEntry>& entries);

/// One member of an archive that was read.
struct TarMember {
  static constexpr char k_file = '0';
  static constexpr char k_directory = '5';

  std::string name;  ///< without slashes at either end; empty for "/"
  char type = k_file;
  unsigned mode = 0;  ///< permission bits, with setuid, setgid and sticky
  std::uint64_t uid = 0;
  std::uint64_t size = 0;
  std::string content{};  ///< of a file; empty if it exceeds the reader's limit
};

/// Reads a ustar or pax archive piece by piece. Its memory is bounded by the limit for contents, which are skipped
/// beyond it.
class TarReader {
 public:
  explicit TarReader(std::size_t max_content_bytes) : m_max_content_bytes(max_content_bytes) {}

  void feed(std::string_view bytes);
  /// The next member whose content has arrived; nullopt if more bytes are needed, and at the end of the archive.
  Result<std::optional<TarMember>> next();

 private:
  Result<TarMember> parse_header() const;
  /// Applies the records of an extended header to the member that follows it.
  Result<void> read_extension(char type, std::string_view content);

  std::size_t m_max_content_bytes;
  std::string m_bytes;          // received and not yet consumed
  std::uint64_t m_to_skip = 0;  // bytes of a content that exceeds the limit
  bool m_ended = false;
  std::optional<std::string> m_long_name;  // the next member's, from extended headers
  std::optional<std::uint64_t> m_long_uid;
  std::optional<std::uint64_t> m_long_size;
};

}  // namespace dockbridge::docker
