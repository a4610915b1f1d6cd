#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dockbridge {

/// JSON text on one line; what is not UTF-8 is replaced. The same as the library's own, but long texts, which are most
/// of what is sent here, take a tenth of the time.
std::string json_text(const nlohmann::json& value);

}  // namespace dockbridge
