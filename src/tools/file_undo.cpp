#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

namespace {

constexpr const char* k_description =
    "Undo the newest change that these tools made to a file, or the given one. An undo can be undone.";

mcp::ToolResult undo(const ToolCall& call) {
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
  return undone ? tell_change(call, *undone, undone->revision.empty() ? "Removed" : "Restored")
                : mcp::error_result(undone.error());
}

}  // namespace

ToolPlan file_undo(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_undo";
  tool.title = "Undo a change";
  tool.description = k_description;
  tool.input_schema =
      arguments_schema({{"filePath", path_schema()},
                        {"change", {{"type", "string"}, {"description", "Id from the reply to the change"}}}},
                       {"filePath"}, settings);
  tool.output_schema = result_schema(change_schema());
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = false};
  return {std::move(tool), undo};
}

}  // namespace dockbridge::tools
