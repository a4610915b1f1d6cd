#include "util/random.hpp"

#include <sys/random.h>

#include <stdexcept>
#include <string_view>

namespace dockbridge {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::getrandom(bytes.data() + filled, count - filled, 0);
    if (got < 0) {
      throw std::runtime_error("Cannot read random bytes");
    }
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string random_token(std::size_t length) {
  constexpr std::string_view k_alphabet = "abcdefghijklmnopqrstuvwxyz012345";
  std::string token = random_bytes(length);
  for (char& byte : token) {
    byte = k_alphabet[static_cast<unsigned char>(byte) % k_alphabet.size()];
  }
  return token;
}

}  // namespace dockbridge
