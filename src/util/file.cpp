#include "util/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace dockbridge {

Error errno_error(std::string_view what) {
  const int number = errno;
  return {ErrorCode::io_error, fmt::format("{}: {}", what, std::strerror(number))};
}

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail(errno_error("Cannot write"));
    }
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

namespace {

Result<std::string> read_whole(const Fd& file, const std::string& name, std::size_t limit) {
  if (!file) {
    return fail(errno_error("Cannot open " + name));
  }
  constexpr std::size_t k_first_piece = 4096;
  std::string content;
  while (true) {
    const std::size_t size = content.size();
    content.resize(size + std::max(size, k_first_piece));
    const ssize_t got = ::read(file.get(), content.data() + size, content.size() - size);
    const int error = errno;
    content.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && error != EINTR) {
      errno = error;
      return fail(errno_error("Cannot read " + name));
    }
    if (got == 0) {
      return content;
    }
    if (content.size() > limit) {
      return fail(ErrorCode::too_large, fmt::format("{} exceeds {} bytes", name, limit));
    }
  }
}

}  // namespace

Result<std::string> read_file_at(int directory_fd, const std::string& name, std::size_t limit) {
  return read_whole(Fd(::openat(directory_fd, name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), name, limit);
}

Fd open_regular_at(int directory_fd, const std::string& name, int flags) {
  Fd file(::openat(directory_fd, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat info {};
  if (file && (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))) {
    file.reset();
    errno = EINVAL;
  }
  return file;
}

Fd create_anew_at(int directory_fd, const std::string& name) {
  ::unlinkat(directory_fd, name.c_str(), 0);
  return Fd(::openat(directory_fd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

Result<std::string> read_regular_at(int directory_fd, const std::string& name, std::size_t limit) {
  return read_whole(open_regular_at(directory_fd, name, O_RDONLY), name, limit);
}

Result<void> read_pieces(int fd, const std::function<Result<void>(std::string_view piece)>& take) {
  constexpr std::size_t k_piece_bytes = 256UL * 1024;
  std::string piece(k_piece_bytes, '\0');
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, piece.data(), piece.size(), at);
    if (got < 0 && errno != EINTR) {
      return fail(errno_error("Cannot read"));
    }
    if (got == 0) {
      return {};
    }
    if (auto taken = take({piece.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))}); !taken) {
      return taken;
    }
    at += std::max<ssize_t>(got, 0);
  }
}

Result<void> replace_file_at(int directory_fd, const std::string& name, std::string_view content) {
  const std::string temporary = name + ".new";
  Fd file = create_anew_at(directory_fd, temporary);
  if (!file) {
    return fail(errno_error("Cannot create " + temporary));
  }
  if (auto written = write_all(file.get(), content); !written) {
    ::unlinkat(directory_fd, temporary.c_str(), 0);
    return written;
  }
  file.reset();
  if (::renameat(directory_fd, temporary.c_str(), directory_fd, name.c_str()) != 0) {
    return fail(errno_error("Cannot rename " + temporary));
  }
  return {};
}

}  // namespace dockbridge
