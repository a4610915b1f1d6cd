#pragma once

#include <string>
#include <string_view>

namespace dockbridge::sandbox {

/// The agent program that is embedded in this one.
std::string_view agent_image();
/// `agent-<hash of its content>`: so a file with this name has the right content.
std::string agent_file_name();

}  // namespace dockbridge::sandbox
