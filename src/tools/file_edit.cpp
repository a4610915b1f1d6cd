#include <fmt/format.h>

#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::TextEdit;

constexpr std::size_t k_max_edits = 1000;

constexpr const char* k_description =
    "Replace text in a file. oldString must be in the file exactly once, unless replaceAll is true. edits makes "
    "several "
    "replacements, all or none. Line ends and encoding are kept. The reply is a diff. file_undo takes the change back.";

ordered_json edit_properties() {
  return {
      {"oldString", {{"type", "string"}}}, {"newString", {{"type", "string"}}}, {"replaceAll", {{"type", "boolean"}}}};
}

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {{"filePath", path_schema()}};
  properties.update(edit_properties());
  properties["edits"] = {{"type", "array"}, {"items", object_schema(edit_properties(), {"oldString", "newString"})}};
  properties["expectedRevision"] = revision_schema();
  return arguments_schema(std::move(properties), {"filePath"}, settings);
}

TextEdit read_edit(Arguments& arguments) {
  return {arguments.required_text("oldString"), arguments.required_text("newString"),
          arguments.flag("replaceAll", false)};
}

std::vector<TextEdit> read_edits(Arguments& arguments) {
  if (!arguments.has("edits")) {
    return {read_edit(arguments)};
  }
  std::vector<TextEdit> edits;
  for (Arguments& nested : arguments.objects("edits")) {
    edits.push_back(read_edit(nested));
    arguments.adopt(nested);
  }
  if (arguments.has("oldString") || arguments.has("newString")) {
    arguments.reject("edits", "must not be combined with oldString and newString");
  }
  if (edits.empty() || edits.size() > k_max_edits) {
    arguments.reject("edits", fmt::format("must have 1 to {} entries", k_max_edits));
  }
  return edits;
}

ToolResult edit(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  const sandbox::ChangeRequest request = read_change_request(call);
  const auto edits = read_edits(arguments);
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto edited = call.sandbox.files().edit(request, edits, call.limit());
  if (!edited) {
    return mcp::error_result(edited.error());
  }
  ToolResult result = tell_change(*edited, "Edited");
  result.structured["replacements"] = edited->replacements;
  return result;
}

}  // namespace

ToolPlan file_edit(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_edit";
  tool.title = "Edit a file";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  tool.output_schema = result_schema(change_schema());
  tool.meta = client_meta(/*always_load=*/true, 0);
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = false};
  return {std::move(tool), edit};
}

}  // namespace dockbridge::tools
