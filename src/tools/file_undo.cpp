#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"

namespace dockbridge::tools {

namespace file_undo {

using mcp::ordered_json;

ordered_json input_schema(const Settings& settings) {
  return arguments_schema({{"filePath", path_schema()},
                           {"change", {{"type", "string"}, {"description", "Id from the reply to the change"}}}},
                          {"filePath"}, settings);
}

ordered_json output_schema() {
  return result_schema(change_schema());
}

mcp::ToolResult undo(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  sandbox::ChangeRequest request;
  request.path = read_path(call, "filePath");
  request.owner = call.context.owner;
  const std::string change = arguments.text("change").value_or("");
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto undone = call.sandbox.files().undo(request, change, call.limit());
  return undone ? report_change(call, *undone, undone->revision.empty() ? "Removed" : "Restored")
                : mcp::error_result(undone.error());
}

}  // namespace file_undo

const ToolCode k_file_undo{file_undo::input_schema, file_undo::output_schema, file_undo::undo};

}  // namespace dockbridge::tools
