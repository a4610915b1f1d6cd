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

/// Contents of files by their revision: what was read, so that a later change by others can be shown, and what was
/// replaced, so that it can be brought back. Bounded: what has not been used for long goes first. Small ones are in a
/// pack, the others are files of their own. Several processes may use the same directory.
class ContentStore {
 public:
  struct Limits {
    std::uint64_t bytes = 256ULL * 1024 * 1024;  ///< of those that are files of their own
    std::size_t count = 1000;
    ContentPack::Limits pack{.bytes = 256ULL * 1024 * 1024, .count = 5000};
  };

  /// Contents up to this size are kept when they are read or written, so that later changes by others can be shown.
  static constexpr std::size_t k_most_remembered_bytes = ContentPack::k_most_content_bytes;

  /// Beneath `state_fd`, which has to outlive it; the directory `contents` is made there.
  static Result<ContentStore> open(int state_fd, Limits limits);
  static Result<ContentStore> open(int state_fd) { return open(state_fd, Limits{}); }

  /// Error `too_large` for what the store could not hold beside anything else.
  Result<void> put(const std::string& revision, std::string_view content);
  /// The same for what is in a file, from its start to its end.
  Result<void> put_file(const std::string& revision, int fd, std::uint64_t size);
  /// Error `content_expired` if it is not there any more.
  [[nodiscard]] Result<std::string> get(const std::string& revision, std::size_t limit);
  /// The same, as a file to read from. What comes from a file of its own is not checked.
  [[nodiscard]] Result<Fd> open_content(const std::string& revision);

 private:
  ContentStore(int state_fd, Fd directory, Limits limits)
      : m_pack(state_fd, limits.pack), m_directory(std::move(directory)), m_limits(limits) {}
  /// None also if it is damaged; there may be a file of its own then.
  [[nodiscard]] std::optional<std::string> get_packed(const std::string& revision);
  [[nodiscard]] std::uint64_t most_content_bytes() const { return m_limits.bytes / 2; }
  [[nodiscard]] bool has(const std::string& revision, std::uint64_t size) const;
  Result<Fd> create(const std::string& revision, std::uint64_t size);
  Result<void> finish(const std::string& revision, const Result<void>& written) const;
  void prune();

  ContentPack m_pack;
  Fd m_directory;
  Limits m_limits;
  std::uint64_t m_since_prune = 0;  ///< bytes, more than there may be at the start
  std::size_t m_puts_since_prune = 0;
  bool m_pruned = false;
};

}  // namespace dockbridge::agent
