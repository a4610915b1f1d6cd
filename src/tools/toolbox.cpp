#include "tools/toolbox.hpp"

#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

void note_unknown(const Arguments& arguments, mcp::ToolResult& result) {
  std::string names;
  for (const std::string& name : arguments.unknown()) {
    names += (names.empty() ? "" : ", ") + printable_line(name, 60);
  }
  if (!names.empty() && !result.is_error) {
    result.text += "\nNote: ignored arguments this tool does not know: " + names;
  }
}

}  // namespace

std::vector<mcp::Tool> all_tools(const SandboxResolver& resolve, const Settings& settings) {
  std::vector plans{execute_command(settings), check_process(settings), send_input(settings), control_process(settings),
                    file_read(settings),       file_write(settings),    file_edit(settings),  file_undo(settings),
                    file_ls(settings),         file_glob(settings),     file_grep(settings)};
  if (settings.host_directories) {
    plans.push_back(file_upload(settings));
    plans.push_back(file_download(settings));
  }
  std::vector<mcp::Tool> tools;
  for (ToolPlan& plan : plans) {
    plan.description.call = [resolve, settings, call = plan.call](const mcp::json& values,
                                                                  const mcp::CallContext& context) {
      sandbox::Sandbox& sandbox = resolve(context);
      Arguments arguments(values);
      mcp::ToolResult result = call({sandbox, settings, arguments, context});
      note_unknown(arguments, result);
      result.subject = sandbox.container_name();
      return result;
    };
    tools.push_back(std::move(plan.description));
  }
  return tools;
}

}  // namespace dockbridge::tools
