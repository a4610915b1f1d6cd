#include "util/base64.hpp"

#include <array>
#include <cstdint>

namespace dockbridge {

namespace {

constexpr std::string_view k_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::int8_t k_none = -1;

constexpr std::array<std::int8_t, 256> values_of_digits() {
  std::array<std::int8_t, 256> values{};
  values.fill(k_none);
  for (std::size_t i = 0; i < k_digits.size(); ++i) {
    values[static_cast<unsigned char>(k_digits[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8U) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(i + k <= bytes.size() ? k_digits[(group >> (18U - 6U * k)) & 63U] : '=');
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  static constexpr auto k_values = values_of_digits();
  while (!text.empty() && (text.back() == '=' || text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      continue;
    }
    const std::int8_t value = k_values[static_cast<unsigned char>(c)];
    if (value == k_none) {
      return std::nullopt;
    }
    group = (group << 6U) | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<char>((group >> bits) & 0xFFU));
    }
  }
  return bits == 6 ? std::nullopt : std::optional(std::move(bytes));
}

}  // namespace dockbridge
