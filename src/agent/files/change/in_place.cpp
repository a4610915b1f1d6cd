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

/// The bytes from `at` on, fewer than asked for at the end of the file or where it cannot be read.
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

/// How far two files are the same from `at` on.
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

/// How many bytes they have in common at their end.
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
  // Room first: afterwards there is no way back.
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
  // What is not on a disk, such as a file of /proc, need not be synced and says so.
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
  const off_t put_back = same_until(file, before, 0);
  const off_t written = same_until(file, after, put_back);
  return size == std::max(length_of(before), written) && written + common_end(file, before) >= size;
}

bool is_to_put_back(int file, int before, int after) {
  const off_t size = length_of(file);
  if (is_same(file, before) || size < length_of(after)) {
    return false;
  }
  const off_t put_back = same_until(file, before, 0);
  return put_back == size || same_until(file, after, put_back) == size;
}

}  // namespace dockbridge::agent
