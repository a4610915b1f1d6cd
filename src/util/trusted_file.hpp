#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "error/error.hpp"

namespace dockbridge {

/// Conditions that a file must meet before its content is used.
struct FileTrust {
  std::string what;           ///< for messages: "token file"
  ErrorCode code;             ///< of the errors for a condition that is not met
  bool may_be_link = false;   ///< whether the last component of its path may be a symbolic link
  mode_t forbidden_mode = 0;  ///< permissions that must not be set
  std::size_t max_bytes = 1024UL * 1024;
};

/// The content of a regular file that belongs to root or to the user of this process; nullopt if it does not exist. The
/// file is opened once and all checks use the descriptor, so the file cannot be swapped in between. Never blocks: a
/// FIFO or a device is an error.
Result<std::optional<std::string>> read_trusted_file(const std::string& path, const FileTrust& trust);

}  // namespace dockbridge
