#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/files/image/image_header.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// An image with more pixels is not decoded.
inline constexpr std::uint64_t k_max_decoded_pixels = 40'000'000;
/// A larger file is not read.
inline constexpr std::uint64_t k_max_scaled_file_bytes = 32ULL * 1024 * 1024;

struct ScaledImage {
  std::string bytes;
  std::string type;  ///< image/png or image/jpeg
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// Scales a PNG or JPEG image so that its longer side has `max_side` pixels, upright. The result has at most
/// `max_bytes`; a PNG that would be larger becomes a JPEG.
///
/// The decoder runs in its own process, which can make no system call but exit. It has 512 MiB of memory and 20 s of
/// CPU time. So a malicious file can only make it fail. Errors: `bad_image` if it fails, `too_large` if the image
/// exceeds the limit on pixels or time, `out_of_memory`, and `cannot_start` if the kernel refuses to confine it.
Result<ScaledImage> scale_image(std::string_view file, const ImageHeader& header, std::uint32_t max_side,
                                std::size_t max_bytes);

}  // namespace dockbridge::agent
