#include "tools/toolbox.hpp"

namespace dockbridge::tools {

std::vector<mcp::Tool> all_tools(const SandboxResolver& resolve, const Settings& settings) {
  return {execute_command(resolve, settings), check_process(resolve, settings), send_input(resolve, settings)};
}

}  // namespace dockbridge::tools
