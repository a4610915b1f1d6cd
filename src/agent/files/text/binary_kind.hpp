#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// "image/png", "image/jpeg", "image/gif" or "image/webp", by the first 12 bytes.
std::optional<std::string> image_type_of(std::string_view first_bytes);
/// What people call such a file ("gzip archive"), by the first 300 bytes; "binary data" if it is none of those known
/// here.
std::string describe_binary(std::string_view first_bytes);

}  // namespace dockbridge::agent
