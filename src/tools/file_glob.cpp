#include <fmt/format.h>

#include "tools/file_report.hpp"
#include "tools/following.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;

constexpr std::int64_t k_usual_max = 100;
constexpr std::int64_t k_largest_max = 5000;
constexpr std::int64_t k_largest_offset = 1'000'000'000;

constexpr const char* k_description =
    "Find files of the container by name. The pattern is a glob: * and ? within a name, ** over directories, [a-z], "
    "{a,b}. Without a slash it is held against names at any depth, with one against the path below `path`. What "
    ".gitignore or .ignore ignores, and hidden files, are left out unless asked for.\n"
    "Example: {\"pattern\": \"src/**/*.{ts,tsx}\", \"newestFirst\": true, \"rationale\": \"see what changed\"}";

ordered_json input_schema(const Settings& settings) {
  return arguments_schema(
      {{"pattern", {{"type", "string"}, {"description", "The glob."}}},
       {"path", {{"type", "string"}, {"description", "Where to look (default: the workdir)."}}},
       {"newestFirst", {{"type", "boolean"}, {"description", "By time of change instead of by name."}}},
       {"hidden", {{"type", "boolean"}, {"description", "Also names that begin with a dot (default false)."}}},
       {"gitignore", {{"type", "boolean"}, {"description", "Leave out what .gitignore ignores (default true)."}}},
       {"offset", {{"type", "integer"}, {"minimum", 0}, {"description", "Files to skip, for the next page."}}},
       {"maxResults",
        {{"type", "integer"},
         {"minimum", 1},
         {"maximum", k_largest_max},
         {"description", fmt::format("How many files at the most (default {}).", k_usual_max)}}}},
      {"pattern"}, settings);
}

ordered_json output_schema() {
  ordered_json properties = {{"path", {{"type", "string"}}}, {"files", {{"type", "array"}, {"items", entry_schema()}}}};
  add_totals_schema(properties);
  return result_schema(std::move(properties));
}

ToolResult find(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  sandbox::GlobRequest request;
  request.pattern = arguments.required_text("pattern");
  request.path = read_path(arguments, "path", call.sandbox.files().base(), call.sandbox.files().base());
  request.newest_first = arguments.flag("newestFirst", false);
  request.hidden = arguments.flag("hidden", false);
  request.honour_ignore_files = arguments.flag("gitignore", true);
  request.offset = static_cast<std::uint64_t>(arguments.integer("offset", 0, k_largest_offset).value_or(0));
  request.max = static_cast<std::size_t>(arguments.integer("maxResults", 1, k_largest_max).value_or(k_usual_max));
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const Heartbeat heartbeat(call.context, "looking for files");
  const auto found = call.sandbox.files().glob(request, longest_wait(call), call.limit(longest_wait(call)));
  if (!found) {
    return mcp::error_result(found.error());
  }
  ToolResult result;
  result.structured = {{"path", found->path}, {"files", mcp::json::array()}};
  result.text = found->entries.empty() ? "No files found\n" : "";
  for (const sandbox::FileEntry& entry : found->entries) {
    result.text += printable_line(entry.path, 4096) + "\n";
    result.structured["files"].push_back(entry_fields(entry, true));
  }
  result.text.pop_back();
  add_totals(found->totals, request.offset, found->shown, "files", result);
  return result;
}

}  // namespace

ToolPlan file_glob(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_glob";
  tool.title = "Find files by name";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  tool.output_schema = output_schema();
  tool.annotations = {.read_only = true, .destructive = false, .idempotent = true, .open_world = false};
  return {std::move(tool), find};
}

}  // namespace dockbridge::tools
