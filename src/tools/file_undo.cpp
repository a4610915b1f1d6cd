#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

namespace {

constexpr const char* k_description =
    "Take back a change that file_write, file_edit or file_undo made to a file: the newest one, or the one whose "
    "change id is given. The file has to be as that change left it. A file that the change created is removed. An undo "
    "can be undone.\n"
    "Example: {\"filePath\": \"src/app.py\", \"rationale\": \"the edit broke the tests\"}";

mcp::ToolResult undo(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  sandbox::ChangeRequest request;
  request.path = read_path(arguments, "filePath", call.sandbox.files().base());
  request.owner = call.context.owner;
  const std::string change = arguments.text("change").value_or("");
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto undone = call.sandbox.files().undo(request, change, call.limit());
  return undone ? tell_change(*undone, undone->revision.empty() ? "Removed" : "Restored")
                : mcp::error_result(undone.error());
}

}  // namespace

ToolPlan file_undo(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_undo";
  tool.title = "Undo a change to a file";
  tool.description = k_description;
  tool.input_schema = arguments_schema(
      {{"filePath", path_schema()},
       {"change", {{"type", "string"}, {"description", "The change to take back, as its reply named it."}}}},
      {"filePath"}, settings);
  tool.output_schema = result_schema(change_schema());
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = false};
  return {std::move(tool), undo};
}

}  // namespace dockbridge::tools
