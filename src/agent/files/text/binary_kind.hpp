#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dockbridge::agent {

/// Returns "image/png", "image/jpeg", "image/gif" or "image/webp", from the first 12 bytes.
std::optional<std::string> image_type_of(std::string_view first_bytes);
/// Common name of a kind of file ("gzip archive"), from the first 300 bytes; "binary data" if the kind is unknown.
std::string describe_binary(std::string_view first_bytes);

}  // namespace dockbridge::agent
