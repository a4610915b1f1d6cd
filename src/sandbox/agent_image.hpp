#pragma once

#include <string>
#include <string_view>

namespace dockbridge::sandbox {

/// The agent program that travels inside this one.
std::string_view agent_image();
/// `agent-<hash of its content>`: an agent in place is the right one, or has another name.
std::string agent_file_name();

}  // namespace dockbridge::sandbox
