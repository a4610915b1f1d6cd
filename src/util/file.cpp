#include "util/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace dockbridge {

Error errno_error(std::string_view what) {
  const int number = errno;
  return {"io_error", fmt::format("{}: {}", what, std::strerror(number))};
}

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail(errno_error("write"));
    }
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::string> read_file_at(int directory_fd, const std::string& name, std::size_t limit) {
  const Fd file(::openat(directory_fd, name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    return fail(errno_error("open " + name));
  }
  std::string content;
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail(errno_error("read " + name));
    }
    if (got == 0) {
      return content;
    }
    if (content.size() + static_cast<std::size_t>(got) > limit) {
      return fail("too_large", fmt::format("{} is larger than {} bytes", name, limit));
    }
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Result<void> replace_file_at(int directory_fd, const std::string& name, std::string_view content) {
  const std::string temporary = name + ".new";
  Fd file(::openat(directory_fd, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) {
    return fail(errno_error("create " + temporary));
  }
  if (auto written = write_all(file.get(), content); !written) {
    ::unlinkat(directory_fd, temporary.c_str(), 0);
    return written;
  }
  file.reset();
  if (::renameat(directory_fd, temporary.c_str(), directory_fd, name.c_str()) != 0) {
    return fail(errno_error("rename " + temporary));
  }
  return {};
}

}  // namespace dockbridge
