#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/files/image/image_header.hpp"
#include "error/error.hpp"

namespace dockbridge::agent {

/// More pixels are not decoded.
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
/// The decoder runs in a process of its own that can make no system call but to end, with 512 MiB of memory and 20 s of
/// CPU time. So a malicious file can make it fail and nothing else. Error `bad_image` if it fails, `too_large` for more
/// pixels than are decoded or more time than that, `out_of_memory`, and `cannot_start` if the kernel does not let it be
/// confined.
Result<ScaledImage> scale_image(std::string_view file, const ImageHeader& header, std::uint32_t max_side,
                                std::size_t max_bytes);

}  // namespace dockbridge::agent
