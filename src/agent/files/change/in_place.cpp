#include "agent/files/change/in_place.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "agent/files/file_space.hpp"

namespace dockbridge::agent {

namespace {

constexpr off_t k_piece_bytes = 256 * 1024;

off_t length_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? info.st_size : 0;
}

/// The bytes from `at` on, fewer than requested at the end of the file or after a read error.
std::string_view read_piece(int fd, off_t at, std::string& buffer, off_t wanted) {
  buffer.resize(static_cast<std::size_t>(wanted));
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    const ssize_t got = ::pread(fd, buffer.data() + filled, buffer.size() - filled, at + static_cast<off_t>(filled));
    if (got == 0 || (got < 0 && errno != EINTR)) {
      break;
    }
    filled += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return std::string_view(buffer).substr(0, filled);
}

/// The offset from `at` on where two files begin to differ.
off_t same_until(int a, int b, off_t at) {
  std::string piece_of_a;
  std::string piece_of_b;
  while (true) {
    const std::string_view here = read_piece(a, at, piece_of_a, k_piece_bytes);
    const std::string_view there = read_piece(b, at, piece_of_b, k_piece_bytes);
    const auto differ = std::mismatch(here.begin(), here.end(), there.begin(), there.end()).first;
    at += differ - here.begin();
    if (here.empty() || differ != here.end()) {
      return at;
    }
  }
}

/// The number of equal bytes at the end of two files.
off_t common_end(int a, int b) {
  std::string piece_of_a;
  std::string piece_of_b;
  const off_t most = std::min(length_of(a), length_of(b));
  for (off_t common = 0;;) {
    const off_t length = std::min(most - common, k_piece_bytes);
    const std::string_view here = read_piece(a, length_of(a) - common - length, piece_of_a, length);
    const std::string_view there = read_piece(b, length_of(b) - common - length, piece_of_b, length);
    const auto differ = std::mismatch(here.rbegin(), here.rend(), there.rbegin(), there.rend()).first;
    common += differ - here.rbegin();
    if (here.empty() || differ != here.rend()) {
      return common;
    }
  }
}

bool is_same(int a, int b) {
  const off_t size = length_of(a);
  return size == length_of(b) && same_until(a, b, 0) == size;
}

}  // namespace

Result<void> write_over(int file, int content, const std::string& path) {
  const off_t size = length_of(content);
  // Reserve space first, because the old bytes are lost as soon as the write begins.
  if (size > 0 && ::fallocate(file, FALLOC_FL_KEEP_SIZE, 0, size) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    return fail(file_error(path, errno));
  }
  std::string buffer;
  for (off_t at = 0; at < size;) {
    std::string_view piece = read_piece(content, at, buffer, std::min(size - at, k_piece_bytes));
    if (piece.empty()) {
      return fail(file_error(path, EIO));
    }
    while (!piece.empty()) {
      const ssize_t written = ::pwrite(file, piece.data(), piece.size(), at);
      if (written < 0 && errno != EINTR) {
        return fail(file_error(path, errno));
      }
      piece.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
      at += std::max<ssize_t>(written, 0);
    }
  }
  // A file that is not on a disk, such as one of /proc, reports EINVAL and needs no sync.
  if (::ftruncate(file, size) != 0 || (::fsync(file) != 0 && errno != EINVAL)) {
    return fail(file_error(path, errno));
  }
  return {};
}

bool is_mixture(int file, int before, int after) {
  const off_t size = length_of(file);
  if (is_same(file, before) || is_same(file, after)) {
    return false;
  }
  const off_t restored = same_until(file, before, 0);
  const off_t written = same_until(file, after, restored);
  return size == std::max(length_of(before), written) && written + common_end(file, before) >= size;
}

bool needs_restore(int file, int before, int after) {
  const off_t size = length_of(file);
  if (is_same(file, before) || size < length_of(after)) {
    return false;
  }
  const off_t restored = same_until(file, before, 0);
  return restored == size || same_until(file, after, restored) == size;
}

}  // namespace dockbridge::agent
