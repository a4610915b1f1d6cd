#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"

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
  bool has_expected_content = false;  ///< a file with exactly the content that the reader expects
};

/// Reads a ustar or pax archive piece by piece and compares the content of each file with an expected one. Keeps no
/// content, so its memory does not grow with the files.
class TarReader {
 public:
  /// `expected` must outlive the reader.
  explicit TarReader(std::string_view expected) : m_expected(expected) {}

  void feed(std::string_view bytes);
  /// The next member whose content has been compared. nullopt if more bytes are needed, and at the end of the archive.
  Result<std::optional<TarMember>> next();

 private:
  Result<TarMember> parse_header() const;
  /// Applies the records of an extended header to the member that follows it.
  Result<void> read_extension(char type, std::string_view content);
  /// Starts on the content of a member: compares it if it has the expected size, and skips it otherwise.
  void begin_content(const TarMember& member);
  /// Compares and skips what belongs to the current content. Returns how many bytes that was.
  std::size_t consume_content(std::string_view bytes);

  std::string_view m_expected;
  std::string m_bytes;  // received and not yet consumed
  std::optional<TarMember> m_current;
  std::uint64_t m_to_compare = 0;  // bytes of the current member's content
  std::uint64_t m_to_skip = 0;     // bytes after those: padding, or a content of another size
  bool m_ended = false;
  std::optional<std::string> m_long_name;  // the next member's, from extended headers
  std::optional<std::uint64_t> m_long_uid;
  std::optional<std::uint64_t> m_long_size;
};

}  // namespace dockbridge::docker
