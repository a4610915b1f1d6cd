#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "util/error.hpp"
#include "util/fd.hpp"

namespace dockbridge {

/// "<what>: <strerror(errno)>" under the code `io_error`; call it right after the failed system call.
Error errno_error(std::string_view what);

/// Writes all of `data` to a blocking descriptor.
Result<void> write_all(int fd, std::string_view data);

/// Reads the file `name` below `directory_fd` (AT_FDCWD for a plain path). A file beyond `limit` is an error; a
/// FIFO is not waited for.
Result<std::string> read_file_at(int directory_fd, const std::string& name, std::size_t limit);

/// Reads a file from its start to its end and hands on a piece at a time, until `take` fails.
Result<void> read_pieces(int fd, const std::function<Result<void>(std::string_view piece)>& take);

/// Replaces `name` below `directory_fd` in one step: readers see the old content or the new, never a part.
Result<void> replace_file_at(int directory_fd, const std::string& name, std::string_view content);

}  // namespace dockbridge
