#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "util/fd.hpp"

namespace dockbridge::agent {

/// Small contents by their revision, one after the other in one file: to add one makes no file, which can take longer
/// than all the rest of a change. When the file is full it becomes the older of two, and what was in that is gone; so
/// the half of the limits that was used last is always there. Several processes may use the same directory; none of
/// them ever waits for another. Does not check what it returns.
class ContentPack {
 public:
  struct Limits {
    std::uint64_t bytes;  ///< of both files
    std::size_t count;    ///< of contents in both
  };

  static constexpr std::size_t k_most_content_bytes = 1024UL * 1024;

  /// In the directory `directory_fd`, which has to outlive it.
  ContentPack(int directory_fd, Limits limits)
      : m_directory_fd(directory_fd), m_limits{limits.bytes / 2, limits.count / 2} {}

  /// Makes sure that it is among the newer ones. False if it cannot be kept here: it is too large, another process is
  /// just adding something, or the disk is full.
  bool put(const std::string& revision, std::string_view content);
  [[nodiscard]] std::optional<std::string> get(const std::string& revision);
  /// The next `put` of it adds it anew.
  void forget(const std::string& revision);

 private:
  /// One of the two files, as far as this process has seen it.
  struct Volume {
    struct Place {
      off_t offset;
      std::size_t size;
    };

    static Volume open(int directory_fd, const char* name, int flags);
    [[nodiscard]] bool is_named(int directory_fd, const char* name) const;
    /// Takes note of what has been added, up to what is not whole. Without the lock on it that is only likely: someone
    /// may just be replacing what was added in part.
    void read_on(const Limits& limits, bool is_locked);
    [[nodiscard]] bool has(const std::string& revision, std::size_t size) const;
    [[nodiscard]] bool has_room(const Limits& limits, std::size_t size) const;
    /// With the lock on it.
    bool add(const std::string& revision, std::string_view content);
    [[nodiscard]] std::optional<std::string> get(const std::string& revision) const;

    Fd file;
    off_t end = 0;       ///< of what is whole
    off_t sure_end = 0;  ///< the same as it was seen with the lock
    std::unordered_map<std::string, Place> places;
  };

  /// As others may have turned them over.
  void look_at(Volume& volume, const char* name) const;
  /// Makes the recent one the older one. With the lock on it.
  bool turn_over();

  int m_directory_fd;
  Limits m_limits;  ///< of each of the two
  Volume m_recent;
  Volume m_older;
};

}  // namespace dockbridge::agent
