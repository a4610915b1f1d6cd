#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dockbridge {

std::string to_hex(std::string_view bytes);

/// RFC 4648, with padding.
std::string to_base64(std::string_view bytes);
/// Strict: none if a character, the length or the padding is not as `to_base64` would have made it.
std::optional<std::string> from_base64(std::string_view text);

/// "%2Fapp" as "/app"; none if a percent sign is not followed by two hexadecimal digits.
std::optional<std::string> from_percent_encoding(std::string_view text);

/// Takes as long for equal texts as for texts that differ early; only a difference in length shows.
bool equal_in_constant_time(std::string_view one, std::string_view other);

}  // namespace dockbridge
