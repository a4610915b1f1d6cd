#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/files/change/content_pack.hpp"
#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge::agent {

/// Stores contents of files by their revision: contents that were read, so that later changes by others can be shown,
/// and replaced contents, so that they can be restored. Bounded: the least recently used content is removed first.
/// Small contents are in a pack, the others are separate files. Several processes may use the same directory.
class ContentStore {
 public:
  struct Limits {
    std::uint64_t bytes = 256ULL * 1024 * 1024;  ///< of those that are separate files
    std::size_t count = 1000;
    ContentPack::Limits pack{.bytes = 256ULL * 1024 * 1024, .count = 5000};
  };

  /// Contents up to this size are kept when they are read or written, so that later changes by others can be shown.
  static constexpr std::size_t k_max_remembered_bytes = ContentPack::k_max_content_bytes;

  /// Creates the directory `contents` beneath `state_fd`, which is borrowed.
  static Result<ContentStore> open(int state_fd, Limits limits);
  static Result<ContentStore> open(int state_fd) { return open(state_fd, Limits{}); }

  /// Error `too_large` for a content over half of the limit.
  Result<void> put(const std::string& revision, std::string_view content);
  /// The same for the content of a file.
  Result<void> put_file(const std::string& revision, int fd, std::uint64_t size);
  /// Error `content_expired` if it is not stored any more.
  [[nodiscard]] Result<std::string> get(const std::string& revision, std::size_t limit);
  /// The same, as a file. The content of a separate file is not verified.
  [[nodiscard]] Result<Fd> open_content(const std::string& revision);

 private:
  ContentStore(int state_fd, Fd directory, Limits limits)
      : m_pack(state_fd, limits.pack), m_directory(std::move(directory)), m_limits(limits) {}
  /// nullopt also if it is damaged. There may be a separate file in that case.
  [[nodiscard]] std::optional<std::string> get_packed(const std::string& revision);
  [[nodiscard]] std::uint64_t max_content_bytes() const { return m_limits.bytes / 2; }
  [[nodiscard]] bool has(const std::string& revision, std::uint64_t size) const;
  Result<Fd> create(const std::string& revision, std::uint64_t size);
  Result<void> finish(const std::string& revision, const Result<void>& written) const;
  void prune();

  ContentPack m_pack;
  Fd m_directory;
  Limits m_limits;
  std::uint64_t m_since_prune = 0;  ///< bytes
  std::size_t m_puts_since_prune = 0;
  bool m_pruned = false;
};

}  // namespace dockbridge::agent
