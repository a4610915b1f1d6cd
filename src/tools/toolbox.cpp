#include "tools/toolbox.hpp"

namespace dockbridge::tools {

std::vector<mcp::Tool> all_tools(const SandboxResolver& resolve, const Settings& settings) {
  std::vector<mcp::Tool> tools = {execute_command(resolve, settings), check_process(resolve, settings),
                                  send_input(resolve, settings)};
  for (mcp::Tool& tool : tools) {
    tool.call = [call = std::move(tool.call), resolve](const mcp::json& values, const mcp::CallContext& context) {
      mcp::ToolResult result = call(values, context);
      result.subject = resolve(context).container_name();
      return result;
    };
  }
  return tools;
}

}  // namespace dockbridge::tools
