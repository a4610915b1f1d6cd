#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dockbridge::agent {

/// Facts that an image file states about itself. Nothing is decoded.
struct ImageHeader {
  std::uint32_t width = 0;  ///< as stored
  std::uint32_t height = 0;
  int orientation = 1;  ///< EXIF value, 1 to 8; from 5 on, the image is shown with width and height exchanged

  [[nodiscard]] bool is_turned() const { return orientation >= 5; }
};

/// Reads the header of a PNG, JPEG, GIF or WebP file. Nullopt for other files, and if the header is damaged or beyond
/// these bytes.
std::optional<ImageHeader> image_header_of(std::string_view bytes);
/// Whether a PNG or JPEG file has its end marker. True for other files.
bool has_image_end(std::string_view bytes);

}  // namespace dockbridge::agent
