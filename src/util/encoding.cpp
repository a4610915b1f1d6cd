#include "util/encoding.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace dockbridge {

namespace {

constexpr std::string_view k_hex = "0123456789abcdef";
constexpr std::string_view k_base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Value of each byte in base64; -1 for other bytes.
constexpr auto k_base64_values = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < k_base64.size(); ++i) {
    values[static_cast<unsigned char>(k_base64[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

}  // namespace

std::optional<std::string> from_percent_encoding(std::string_view text) {
  constexpr std::string_view k_upper_hex = "0123456789ABCDEF";
  const auto digit = [&](std::size_t at) {
    const char c = at < text.size() ? text[at] : '\0';
    return std::min(k_hex.find(c), k_upper_hex.find(c));
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const std::size_t high = digit(i + 1);
    const std::size_t low = digit(i + 2);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return std::nullopt;
    }
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(k_hex[byte >> 4]);
    text.push_back(k_hex[byte & 15]);
  }
  return text;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(k <= count ? k_base64[bits >> (18 - 6 * k) & 63] : '=');
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::size_t missing = i + 4 == text.size() ? padding : 0;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const int value = k < 4 - missing ? k_base64_values[static_cast<unsigned char>(text[i + k])] : 0;
      if (value < 0) {
        return std::nullopt;
      }
      bits = bits << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t k = 0; k < 3 - missing; ++k) {
      bytes.push_back(static_cast<char>(bits >> (16 - 8 * k) & 255));
    }
    if ((bits & ((1U << (8 * missing)) - 1)) != 0) {
      return std::nullopt;  // the unused bits are not zero
    }
  }
  return bytes;
}

bool equal_in_constant_time(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) {
    return false;
  }
  unsigned char difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return difference == 0;
}

}  // namespace dockbridge
