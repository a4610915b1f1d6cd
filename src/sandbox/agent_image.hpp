#pragma once

#include <string>
#include <string_view>

namespace dockbridge::sandbox {

/// The agent program that is embedded in this one.
std::string_view agent_image();
/// `agent-` and a hash of the content. Agents of different versions have different names.
std::string agent_file_name();

}  // namespace dockbridge::sandbox
