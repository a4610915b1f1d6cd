#include "mcp/state_seal.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "util/encoding.hpp"
#include "util/random.hpp"

namespace dockbridge::mcp {

namespace {

constexpr std::size_t k_key_bytes = 32;

std::string mac(const std::string& key, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), digest.data(), &size);
  return to_hex({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace

StateSeal::StateSeal() : m_key(random_bytes(k_key_bytes)) {}

std::string StateSeal::seal(const json& value) const {
  const std::string text = dump(value);
  return mac(m_key, text) + "." + text;
}

std::optional<json> StateSeal::open(const std::string& sealed) const {
  const std::size_t dot = sealed.find('.');
  if (dot == std::string::npos) {
    return std::nullopt;
  }
  const std::string text = sealed.substr(dot + 1);
  if (!equal_in_constant_time(sealed.substr(0, dot), mac(m_key, text))) {
    return std::nullopt;
  }
  auto parsed = parse_json(text);
  auto* value = std::get_if<json>(&parsed);
  return value == nullptr ? std::nullopt : std::optional<json>(std::move(*value));
}

}  // namespace dockbridge::mcp
