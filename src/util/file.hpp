#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "error/error.hpp"
#include "util/fd.hpp"

namespace dockbridge {

/// "<what>: <strerror(errno)>" under the code `io_error`; call it right after the failed system call.
Error errno_error(std::string_view what);

/// Writes all of `data` to a blocking descriptor.
Result<void> write_all(int fd, std::string_view data);

/// Reads the file `name` below `directory_fd` (AT_FDCWD for a plain path). A file beyond `limit` is an error; a
/// FIFO is not waited for.
Result<std::string> read_file_at(int directory_fd, const std::string& name, std::size_t limit);

// The following functions are safe in a directory that hostile processes can write to. They follow no link and do not
// block on a FIFO.

/// Opens a regular file with the given openat flags plus O_CLOEXEC, O_NOFOLLOW and O_NONBLOCK. O_CREAT creates it with
/// mode 0600. On failure the descriptor is empty and errno has the reason: EINVAL if it is not a regular file.
Fd open_regular_at(int directory_fd, const std::string& name, int flags);
/// Creates an empty file for writing and replaces whatever has this name. On failure the descriptor is empty and errno
/// has the reason.
Fd create_anew_at(int directory_fd, const std::string& name);
/// Like read_file_at, but only for a regular file.
Result<std::string> read_regular_at(int directory_fd, const std::string& name, std::size_t limit);

/// Reads a file from its start to its end and passes it to `take` piece by piece, until `take` fails.
Result<void> read_pieces(int fd, const std::function<Result<void>(std::string_view piece)>& take);

/// Replaces `name` below `directory_fd` atomically: readers see the old content or the new content. An existing file
/// named `name`.new is removed.
Result<void> replace_file_at(int directory_fd, const std::string& name, std::string_view content);

}  // namespace dockbridge
