#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "util/error.hpp"
#include "wire/process_state.hpp"

namespace dockbridge::agent {

// What a keeper leaves on disk about its process: `meta` when it starts, `status` when it ends.
// Both are JSON with a version, so that servers of different versions can read each other's.

inline constexpr int k_record_version = 1;
inline constexpr std::size_t k_max_record_bytes = 64 * 1024;
inline constexpr std::size_t k_command_preview_bytes = 1024;

struct Meta {
  std::string command;  ///< cut to k_command_preview_bytes on a character border
  std::string cwd;
  std::string owner;
  std::string rationale;
  std::int64_t pid = 0;
  std::int64_t started_at_ms = 0;
};

struct Status {
  wire::EndKind end = wire::EndKind::none;
  int end_code = 0;
  wire::Cause cause = wire::Cause::none;
  std::int64_t ended_at_ms = 0;
  bool closed = false;  ///< nothing the command started is left
};

Result<void> write_meta(int directory_fd, const Meta& meta);
Result<Meta> read_meta(int directory_fd);
Result<void> write_status(int directory_fd, const Status& status);
/// None while the process runs.
Result<std::optional<Status>> read_status(int directory_fd);

/// The longest prefix of `text` of at most `max` bytes that does not cut a UTF-8 character.
std::string utf8_prefix(std::string_view text, std::size_t max);

}  // namespace dockbridge::agent
