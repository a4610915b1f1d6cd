#pragma once

#include <sys/types.h>

#include <string>

#include "util/fd.hpp"

namespace dockbridge {

/// Whether symbolic links in a path may be followed.
enum class Links { within, none };

/// Opens a path that begins at `directory` and may not leave it, neither by `..` nor by a symbolic link. The kernel
/// enforces this (openat2), even if directories are swapped at the same time. `flags` and `mode` are as for openat;
/// O_CLOEXEC is added. On failure the descriptor is empty and errno has the reason: EXDEV if the path leads out.
Fd open_confined(int directory, const std::string& path, int flags, Links links = Links::within, mode_t mode = 0);

}  // namespace dockbridge
