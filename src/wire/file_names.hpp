#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/names.hpp"

namespace dockbridge::wire {

// Formats of revisions and change ids in file requests, which the host checks in replies and the agent in its state
// directory. Also limits, and the types of files and images.

inline constexpr std::size_t k_revision_length = 32;
inline constexpr std::string_view k_change_prefix = "change_";
inline constexpr std::size_t k_change_digits = 16;
/// Files that one request may change together.
inline constexpr std::size_t k_max_set_files = 500;
inline constexpr unsigned k_permissions = 07777;
inline constexpr std::uint64_t k_max_image_side = std::uint64_t{1} << 24U;

/// Type of a directory entry, without following a link.
enum class FileType : std::uint8_t {
  regular,
  directory,
  symlink,
  fifo,
  socket,
  block_device,
  character_device,
  unknown,
};
template <>
inline constexpr std::array<std::string_view, 8> k_names<FileType> = {"file",   "directory", "link", "fifo",
                                                                      "socket", "block",     "char", "unknown"};

/// Image types that clients can show.
inline constexpr std::array<std::string_view, 4> k_image_types = {"image/png", "image/jpeg", "image/gif", "image/webp"};

inline bool is_lower_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether the text is 32 lower-case hexadecimal digits.
inline bool is_revision(std::string_view text) {
  return text.size() == k_revision_length && is_lower_hex(text);
}

/// Digits of a revision that identify it in requests, and that replies show.
inline constexpr std::size_t k_short_digits = 8;

/// Whether the text is a revision, or at least its first 8 digits.
inline bool is_revision_start(std::string_view text) {
  return text.size() >= k_short_digits && text.size() <= k_revision_length && is_lower_hex(text);
}

/// Whether the text is "change_" and 16 lower-case hexadecimal digits.
inline bool is_change_id(std::string_view text) {
  return text.size() == k_change_prefix.size() + k_change_digits && text.starts_with(k_change_prefix) &&
         is_lower_hex(text.substr(k_change_prefix.size()));
}

/// Whether the text is at least 8 of the digits of a change id, with or without "change_".
inline bool is_change_start(std::string_view text) {
  if (text.starts_with(k_change_prefix)) {
    text.remove_prefix(k_change_prefix.size());
  }
  return text.size() >= k_short_digits && text.size() <= k_change_digits && is_lower_hex(text);
}

inline bool is_image_type(std::string_view text) {
  return std::find(k_image_types.begin(), k_image_types.end(), text) != k_image_types.end();
}

}  // namespace dockbridge::wire
