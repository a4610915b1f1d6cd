#pragma once

#include <sys/types.h>

#include <string>

#include "util/fd.hpp"

namespace dockbridge {

/// Whether symbolic links may be followed on the way.
enum class Links { within, none };

/// Opens a path that begins at `directory` and may not leave it, neither by `..` nor by a symbolic link: the kernel
/// sees to that (openat2), whatever is swapped meanwhile. `flags` and `mode` as for openat; O_CLOEXEC is added. No
/// descriptor: errno says why, EXDEV that the way leads out.
Fd open_confined(int directory, const std::string& way, int flags, Links links = Links::within, mode_t mode = 0);

}  // namespace dockbridge
