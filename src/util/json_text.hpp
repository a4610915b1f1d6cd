#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dockbridge {

/// JSON text on one line; invalid UTF-8 is replaced. The result is the same as the library's, but long texts, which are
/// most of the output here, take a tenth of the time.
std::string json_text(const nlohmann::json& value);

/// A value with known JSON text, which json_text copies. Its content cannot be read through the library.
nlohmann::json with_known_text(const std::string& text);

}  // namespace dockbridge
