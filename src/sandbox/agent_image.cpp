#include "sandbox/agent_image.hpp"

// Defined by the assembler file that cmake/embed_agent.cmake writes.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" const char dockbridge_agent_begin[];
extern "C" const char dockbridge_agent_end[];
extern "C" const char dockbridge_agent_hash[];
// NOLINTEND(readability-identifier-naming)

namespace dockbridge::sandbox {

std::string_view agent_image() {
  return {dockbridge_agent_begin, static_cast<std::size_t>(dockbridge_agent_end - dockbridge_agent_begin)};
}

std::string agent_file_name() {
  return std::string("agent-") + dockbridge_agent_hash;
}

}  // namespace dockbridge::sandbox
