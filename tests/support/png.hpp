#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace dockbridge::test {

// Writes uncompressed PNG files.

inline std::string big_endian(std::uint32_t number, int bytes = 4) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(number >> static_cast<unsigned>(shift)));
  }
  return text;
}

inline std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
  }
  return ~crc;
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data + big_endian(crc32(type + data));
}

/// Bytes in the format of zlib, uncompressed.
inline std::string zlib_stored(const std::string& bytes) {
  std::string out = "\x78\x01";
  for (std::size_t at = 0; at < bytes.size() || at == 0; at += 0xFFFF) {
    const std::string part = bytes.substr(at, 0xFFFF);
    const auto size = static_cast<std::uint32_t>(part.size());
    out += at + 0xFFFF >= bytes.size() ? '\1' : '\0';
    for (const std::uint32_t number : {size, ~size}) {
      out += static_cast<char>(number);
      out += static_cast<char>(number >> 8U);
    }
    out += part;
  }
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return out + big_endian(b << 16U | a);
}

/// `count` zeros in the format of zlib, compressed about a thousandfold: a literal, then matches of length 258 at
/// distance 1, in one block of fixed codes.
inline std::string zlib_zeros(std::uint64_t count) {
  std::string out = "\x78\x01";
  unsigned pending = 0;
  unsigned bits = 0;
  const auto put = [&](unsigned value, unsigned length) {
    for (unsigned bit = 0; bit < length; ++bit) {
      pending |= (value >> bit & 1U) << bits;
      if (++bits == 8) {
        out.push_back(static_cast<char>(pending));
        pending = bits = 0;
      }
    }
  };
  constexpr std::uint64_t k_match = 258;
  put(0b011, 3);  // the last block, with fixed codes
  for (std::uint64_t left = count; left > 0;) {
    if (left > k_match && left < count) {
      put(0b10100011, 8);  // symbol 285, 11000101 with its first bit sent first
      put(0, 5);           // distance 1
      left -= k_match;
    } else {
      put(0b00001100, 8);  // literal 0, 00110000
      --left;
    }
  }
  put(0, 7);  // the end
  put(0, (8 - bits) % 8);
  const auto b = static_cast<std::uint32_t>(count % 65521);
  return out + big_endian(b << 16U | 1U);
}

inline std::string png_start(std::uint32_t width, std::uint32_t height, char depth = 8, char colours = 2) {
  return std::string("\x89PNG\r\n\x1A\n", 8) +
         png_chunk("IHDR", big_endian(width) + big_endian(height) + depth + colours + std::string(3, '\0'));
}

using Colour = std::array<unsigned char, 3>;

/// `colour_at(x, y)` is the colour of each pixel.
template <typename ColourAt>
std::string png(int width, int height, ColourAt colour_at) {
  std::string rows;
  for (int y = 0; y < height; ++y) {
    rows.push_back('\0');
    for (int x = 0; x < width; ++x) {
      for (const unsigned char value : Colour(colour_at(x, y))) {
        rows.push_back(static_cast<char>(value));
      }
    }
  }
  return png_start(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)) +
         png_chunk("IDAT", zlib_stored(rows)) + png_chunk("IEND", "");
}

inline std::string plain_png(int width, int height) {
  return png(width, height, [](int, int) { return Colour{10, 200, 30}; });
}

}  // namespace dockbridge::test
