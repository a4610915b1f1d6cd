#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dockbridge {

std::string to_base64(std::string_view bytes);
/// None if it is not base64. Padding may be missing; line breaks are passed over.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace dockbridge
