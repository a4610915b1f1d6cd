#include "agent/files/image/image_header.hpp"

#include <cstddef>

#include "wire/file_names.hpp"

namespace dockbridge::agent {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view k_png_start = "\x89PNG\r\n\x1A\n\0\0\0\rIHDR"sv;

/// Reads numbers at offsets, in either byte order. Returns 0 beyond the end.
class Numbers {
 public:
  Numbers(std::string_view bytes, bool little_endian) : m_bytes(bytes), m_little_endian(little_endian) {}

  [[nodiscard]] std::uint32_t at(std::size_t offset, std::size_t size) const {
    if (offset > m_bytes.size() || size > m_bytes.size() - offset) {
      return 0;
    }
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < size; ++i) {
      number = number << 8U | static_cast<unsigned char>(m_bytes[offset + (m_little_endian ? size - 1 - i : i)]);
    }
    return number;
  }

 private:
  std::string_view m_bytes;
  bool m_little_endian;
};

constexpr std::string_view k_exif_start = "Exif\0\0"sv;

/// Returns the orientation in an EXIF block: a TIFF header, then a directory of entries of 12 bytes.
int orientation_of(std::string_view exif) {
  constexpr std::uint32_t k_tag = 0x0112;
  constexpr std::uint32_t k_max_entries = 200;
  exif.remove_prefix(k_exif_start.size());
  const Numbers numbers(exif, exif.starts_with("II"));
  const std::size_t directory = numbers.at(4, 4);
  const std::uint32_t entries = numbers.at(directory, 2);
  for (std::uint32_t i = 0; i < entries && i < k_max_entries; ++i) {
    const std::size_t entry = directory + 2 + std::size_t{i} * 12;
    if (numbers.at(entry, 2) == k_tag) {
      const auto value = numbers.at(entry + 8, 2);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

std::optional<ImageHeader> jpeg_header(std::string_view bytes) {
  const Numbers numbers(bytes, false);
  ImageHeader header;
  for (std::size_t at = 2; at + 4 <= bytes.size();) {
    if (bytes[at] != '\xFF') {
      return std::nullopt;
    }
    const std::uint32_t marker = numbers.at(at + 1, 1);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const std::size_t length = numbers.at(at + 2, 2);
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame && at + 9 <= bytes.size()) {
      header.height = numbers.at(at + 5, 2);
      header.width = numbers.at(at + 7, 2);
      return header;
    }
    if (length < 2 || marker == 0xD9 || marker == 0xDA) {
      return std::nullopt;
    }
    const std::string_view content = bytes.substr(at + 4, length - 2);
    if (marker == 0xE1 && content.starts_with(k_exif_start)) {  // XMP has the same marker
      header.orientation = orientation_of(content);
    }
    at += 2 + length;
  }
  return std::nullopt;
}

/// The first chunk states the size: of the canvas (VP8X), of lossless data (VP8L) or of lossy data (VP8).
std::optional<ImageHeader> webp_header(std::string_view bytes) {
  constexpr std::uint32_t k_side_bits = 0x3FFF;
  const Numbers numbers(bytes, true);
  const std::string_view kind = bytes.substr(12, 4);
  if (kind == "VP8L" && bytes.size() >= 25 && bytes[20] == '\x2F') {
    return ImageHeader{(numbers.at(21, 4) & k_side_bits) + 1, (numbers.at(21, 4) >> 14U & k_side_bits) + 1};
  }
  if (kind == "VP8X" && bytes.size() >= 30) {
    return ImageHeader{numbers.at(24, 3) + 1, numbers.at(27, 3) + 1};
  }
  if (kind == "VP8 " && numbers.at(23, 3) == 0x2A019D) {
    return ImageHeader{numbers.at(26, 2) & k_side_bits, numbers.at(28, 2) & k_side_bits};
  }
  return std::nullopt;
}

/// Walks over the segments, because a preview within a segment has an end marker of its own.
bool has_jpeg_end(std::string_view bytes) {
  const Numbers numbers(bytes, false);
  for (std::size_t at = bytes.find('\xFF', 2); at != std::string_view::npos; at = bytes.find('\xFF', at)) {
    const std::uint32_t marker = numbers.at(at + 1, 1);
    if (marker == 0xD9) {
      return true;
    }
    const bool is_in_data = marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD7);
    at += marker == 0xFF ? 1 : is_in_data ? 2 : 2 + numbers.at(at + 2, 2);
  }
  return false;
}

bool has_png_end(std::string_view bytes) {
  constexpr std::size_t k_chunk_frame = 12;  // length, kind and checksum
  const Numbers numbers(bytes, false);
  for (std::size_t at = 8; at + k_chunk_frame <= bytes.size(); at += k_chunk_frame + numbers.at(at, 4)) {
    if (bytes.substr(at + 4, 4) == "IEND") {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<ImageHeader> image_header_of(std::string_view bytes) {
  std::optional<ImageHeader> header;
  if (bytes.starts_with(k_png_start) && bytes.size() >= k_png_start.size() + 8) {
    const Numbers numbers(bytes, false);
    header = {numbers.at(k_png_start.size(), 4), numbers.at(k_png_start.size() + 4, 4), 1};
  } else if (bytes.starts_with("\xFF\xD8\xFF")) {
    header = jpeg_header(bytes);
  } else if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) {
    const Numbers numbers(bytes, true);
    header = {numbers.at(6, 2), numbers.at(8, 2), 1};
  } else if (bytes.starts_with("RIFF") && bytes.size() > 16 && bytes.substr(8, 4) == "WEBP") {
    header = webp_header(bytes);
  }
  const bool is_possible = header && header->width > 0 && header->height > 0 &&
                           header->width <= wire::k_max_image_side && header->height <= wire::k_max_image_side;
  return is_possible ? header : std::nullopt;
}

bool has_image_end(std::string_view bytes) {
  return bytes.starts_with(k_png_start) ? has_png_end(bytes)
                                        : !bytes.starts_with("\xFF\xD8\xFF") || has_jpeg_end(bytes);
}

}  // namespace dockbridge::agent
