#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "util/fd.hpp"

namespace dockbridge::agent {

/// Stores small contents by their revision in one file, because creating a file can take longer than the rest of a
/// change. A full file becomes the older of two files, and the previous older one is removed. So the contents that were
/// stored last are always there, up to half of the limits. Several processes may use the same directory. None of them
/// waits for another. Does not verify what it returns.
class ContentPack {
 public:
  struct Limits {
    std::uint64_t bytes;  ///< of both files
    std::size_t count;    ///< of contents in both
  };

  static constexpr std::size_t k_max_content_bytes = 1024UL * 1024;

  /// Borrows `directory_fd`.
  ContentPack(int directory_fd, Limits limits)
      : m_directory_fd(directory_fd), m_limits{limits.bytes / 2, limits.count / 2} {}

  /// Stores it in the recent file, unless it is there already. False if it is too large, another process is adding a
  /// content, or the disk is full.
  bool put(const std::string& revision, std::string_view content);
  [[nodiscard]] std::optional<std::string> get(const std::string& revision);
  /// The next `put` of it adds it again.
  void forget(const std::string& revision);

 private:
  /// One of the two files, as far as this process has read it.
  struct Volume {
    struct Place {
      off_t offset;
      std::size_t size;
    };

    static Volume open(int directory_fd, const char* name, int flags);
    [[nodiscard]] bool is_named(int directory_fd, const char* name) const;
    /// Reads what was added, up to an incomplete content. Without the lock, the result is only likely: another process
    /// may be replacing an incomplete content.
    void update(const Limits& limits, bool is_locked);
    [[nodiscard]] bool has(const std::string& revision, std::size_t size) const;
    [[nodiscard]] bool has_room(const Limits& limits, std::size_t size) const;
    /// Requires the lock.
    bool add(const std::string& revision, std::string_view content);
    [[nodiscard]] std::optional<std::string> get(const std::string& revision) const;

    Fd file;
    off_t end = 0;         ///< of the complete contents
    off_t locked_end = 0;  ///< the same, as read with the lock
    std::unordered_map<std::string, Place> places;
  };

  /// Reopens the file if another process has rotated it, and reads what was added.
  void refresh(Volume& volume, const char* name) const;
  /// Makes the recent file the older one. Requires the lock.
  bool rotate();

  int m_directory_fd;
  Limits m_limits;  ///< of each file
  Volume m_recent;
  Volume m_older;
};

}  // namespace dockbridge::agent
