#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "util/fd.hpp"

namespace dockbridge::agent {

/// Opens `path` beneath `start_fd` without following a symbolic link in any component, and however long it is. `flags`
/// as for openat; O_CLOEXEC and O_NOFOLLOW are added. No descriptor: errno says why.
Fd open_beneath(int start_fd, std::string_view path, int flags);

/// What is known of `path` beneath `start_fd`, of a link itself. False: errno says why.
bool stat_beneath(int start_fd, std::string_view path, struct stat& info);

/// Where a link beneath `start_fd` leads to; empty if that cannot be told.
std::string link_target_beneath(int start_fd, std::string_view path);

}  // namespace dockbridge::agent
