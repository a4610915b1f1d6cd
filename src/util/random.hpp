#pragma once

#include <sys/random.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace dockbridge {

/// Bytes that nobody can guess, from the kernel.
inline std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::getrandom(bytes.data() + filled, count - filled, 0);
    if (got < 0) {
      throw std::runtime_error("the kernel gives no random bytes");
    }
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace dockbridge
