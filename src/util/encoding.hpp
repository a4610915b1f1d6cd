#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dockbridge {

std::string to_hex(std::string_view bytes);

/// RFC 4648, with padding.
std::string to_base64(std::string_view bytes);
/// Strict: nullopt unless character set, length and padding are exactly as `to_base64` writes them.
std::optional<std::string> from_base64(std::string_view text);

/// Decodes "%2Fapp" to "/app"; nullopt if a percent sign is not followed by two hexadecimal digits.
std::optional<std::string> from_percent_encoding(std::string_view text);

/// Compares secrets. The duration depends on the lengths only.
bool equal_in_constant_time(std::string_view one, std::string_view other);

}  // namespace dockbridge
