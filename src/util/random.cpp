#include "util/random.hpp"

#include <sys/random.h>

#include <cstdlib>
#include <string_view>

namespace dockbridge {

std::string random_token(std::size_t length) {
  constexpr std::string_view k_alphabet = "abcdefghijklmnopqrstuvwxyz012345";
  std::string token(length, '\0');
  if (::getrandom(token.data(), length, 0) != static_cast<ssize_t>(length)) {
    std::abort();  // an id that can be guessed is worse than no server
  }
  for (char& byte : token) {
    byte = k_alphabet[static_cast<unsigned char>(byte) % k_alphabet.size()];
  }
  return token;
}

}  // namespace dockbridge
