#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dockbridge::wire {

/// A name that was found, as the answers to `file.list` and `file.glob` tell of it (docs/agent-protocol.md).
struct FileEntry {
  std::string path;  ///< relative to where the search began; any bytes but NUL
  std::string type;  ///< file, directory, link, fifo, socket, block, char, unknown
  // Of a listing only if it was asked for.
  std::uint64_t size = 0;
  std::int64_t modified_at_ms = 0;
  std::optional<unsigned> mode{};  ///< of a listing
  std::string target{};            ///< of a link
};

std::string encode(const FileEntry& entry);
/// The entries that stand one after another in a body; none if they are not well formed.
std::optional<std::vector<FileEntry>> decode_entries(std::string_view body);

}  // namespace dockbridge::wire
