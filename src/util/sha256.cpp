#include "util/sha256.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "util/encoding.hpp"

namespace dockbridge {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("no digest could be made");
  }
  return to_hex({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace dockbridge
