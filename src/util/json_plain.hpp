#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace dockbridge {

/// Length of the start of `text` that JSON writes unchanged: no quote, backslash or control character.
inline std::size_t plain_json_length(std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t k_ones = 0x0101010101010101U;
  constexpr std::uint64_t k_high_bits = 0x8080808080808080U;
  const auto is_special = [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; };
  // The lowest set bit belongs to the first byte that is less than `least`. Higher bits are not meaningful.
  const auto below = [](std::uint64_t word, std::uint64_t least) {
    return (word - k_ones * least) & ~word & k_high_bits;
  };
  std::size_t at = 0;
  while (text.size() - at >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    const std::uint64_t found = below(word, 0x20) | below(word ^ k_ones * '"', 1) | below(word ^ k_ones * '\\', 1);
    if (found != 0) {
      return at + static_cast<std::size_t>(std::countr_zero(found)) / 8;
    }
    at += sizeof word;
  }
  while (at < text.size() && !is_special(static_cast<unsigned char>(text[at]))) {
    ++at;
  }
  return at;
}

}  // namespace dockbridge
