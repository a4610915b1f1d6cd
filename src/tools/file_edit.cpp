#include <fmt/format.h>

#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::TextEdit;

constexpr std::size_t k_most_edits = 1000;

constexpr const char* k_description =
    "Replace text in a file of the container. oldString has to be in the file exactly once, whitespace included, "
    "unless replaceAll is true; give enough lines around the change to make it unique. Several edits go into edits, "
    "and are made all or none, each on the result of the one before. Line ends and encoding of the file are kept. The "
    "file must have been read first. The reply is a diff; file_undo takes the change back.\n"
    "Example: {\"filePath\": \"src/app.py\", \"oldString\": \"retries = 3\", \"newString\": \"retries = 5\", "
    "\"rationale\": \"try harder\"}";

ordered_json edit_properties() {
  return {{"oldString", {{"type", "string"}, {"description", "The text to replace, exactly as it is in the file."}}},
          {"newString", {{"type", "string"}, {"description", "What to put in its place."}}},
          {"replaceAll", {{"type", "boolean"}, {"description", "Replace every occurrence (default false)."}}}};
}

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = {{"filePath", path_schema()}};
  properties.update(edit_properties());
  properties["edits"] = {{"type", "array"},
                         {"maxItems", k_most_edits},
                         {"items", object_schema(edit_properties(), {"oldString", "newString"})},
                         {"description", "Several edits instead of oldString and newString."}};
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
    arguments.reject("edits", "cannot stand beside oldString and newString");
  }
  if (edits.empty() || edits.size() > k_most_edits) {
    arguments.reject("edits", fmt::format("has to hold 1 to {} edits", k_most_edits));
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
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = false};
  return {std::move(tool), edit};
}

}  // namespace dockbridge::tools
