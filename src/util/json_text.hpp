#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dockbridge {

/// JSON text on one line; what is not UTF-8 is replaced. The same as the library's own, but long texts, which are most
/// of what is sent here, take a tenth of the time.
std::string json_text(const nlohmann::json& value);

/// A value whose text is known: json_text writes it as it is, wherever it stands. Nothing can be looked up in it.
nlohmann::json with_known_text(const std::string& text);

}  // namespace dockbridge
