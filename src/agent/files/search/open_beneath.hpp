#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "util/fd.hpp"

namespace dockbridge::agent {

/// Opens `path` beneath `start_fd` without following a symbolic link in any component. The path may have any length.
/// `flags` are those of openat; O_CLOEXEC and O_NOFOLLOW are added. Sets errno if it returns no descriptor.
Fd open_beneath(int start_fd, std::string_view path, int flags);

/// Gets the status of `path` beneath `start_fd`, without following a link. Sets errno if it returns false.
bool stat_beneath(int start_fd, std::string_view path, struct stat& info);

/// Target of a link beneath `start_fd`; empty if it cannot be read.
std::string link_target_beneath(int start_fd, std::string_view path);

}  // namespace dockbridge::agent
