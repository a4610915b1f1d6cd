#include "util/trusted_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util/fd.hpp"
#include "util/file.hpp"

namespace dockbridge {

Result<std::optional<std::string>> read_trusted_file(const std::string& path, const FileTrust& trust) {
  const int follow = trust.may_be_link ? 0 : O_NOFOLLOW;
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | follow));
  const auto bad = [&](const std::string& problem, const std::string& next_step) {
    return fail(trust.code, fmt::format("The {} {}: {}", trust.what, problem, path), next_step);
  };
  if (!file && errno == ENOENT) {
    return std::nullopt;
  }
  if (!file && errno == ELOOP && !trust.may_be_link) {
    return bad("is a symbolic link", "Name the file itself");
  }
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    return bad(fmt::format("cannot be opened ({})", std::strerror(errno)), "Check its path and permissions");
  }
  if (!S_ISREG(status.st_mode)) {
    return bad("is not a regular file", "Name a regular file");
  }
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return bad("belongs to another user", fmt::format("chown {} {}", ::geteuid(), path));
  }
  if ((status.st_mode & trust.forbidden_mode) != 0) {
    const bool to_read = (trust.forbidden_mode & (S_IRGRP | S_IROTH)) != 0;
    return bad(to_read ? "can be read by others" : "can be changed by others",
               fmt::format("chmod {} {}", to_read ? "600" : "o-w", path));
  }
  std::string content;
  const auto read = read_pieces(file.get(), [&](std::string_view piece) -> Result<void> {
    content.append(piece);
    return content.size() <= trust.max_bytes ? Result<void>() : Result<void>(fail(ErrorCode::too_large, "too large"));
  });
  if (!read) {
    return bad(read.error().code == ErrorCode::too_large ? "is too large" : "cannot be read",
               fmt::format("The limit is {} bytes", trust.max_bytes));
  }
  return content;
}

}  // namespace dockbridge
