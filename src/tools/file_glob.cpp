#include <fmt/format.h>

#include "tools/file_report.hpp"
#include "tools/following.hpp"
#include "tools/search_start.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;

constexpr std::size_t k_usual_max = 100;
constexpr std::size_t k_largest_max = 5000;
constexpr std::int64_t k_largest_offset = 1'000'000'000;

constexpr const char* k_description =
    "Find files by glob (*, ?, **, [a-z], {a,b}). A pattern without a slash matches names at any depth. Ignored and "
    "hidden files are left out.";

ordered_json input_schema(const Settings& settings) {
  const ordered_json flag = {{"type", "boolean"}};
  return arguments_schema(
      {{"pattern", {{"type", "string"}}},
       {"path", {{"type", "string"}, {"description", "Default: the workdir"}}},
       {"newestFirst", flag},
       {"hidden", {{"type", "boolean"}, {"description", "Include hidden files"}}},
       {"gitignore", {{"type", "boolean"}, {"description", "false includes ignored files"}}},
       {"offset", {{"type", "integer"}}},
       {"maxResults", {{"type", "integer"}, {"description", fmt::format("Default {}", k_usual_max)}}}},
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
  std::vector<std::string> patterns = {arguments.required_text("pattern")};
  const SearchStart start = search_start(call, arguments.text("path"), "pattern", patterns);
  request.path = start.path;
  request.pattern = std::move(patterns.front());
  request.newest_first = arguments.flag("newestFirst", false);
  request.hidden = arguments.flag("hidden", false);
  request.honour_ignore_files = arguments.flag("gitignore", true);
  request.offset = static_cast<std::uint64_t>(arguments.integer("offset", 0, k_largest_offset).value_or(0));
  const auto max = read_max_results(arguments, k_largest_max);
  request.max = max.value_or(k_usual_max);
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const Heartbeat heartbeat(call.context, "looking for files");
  const auto found = call.sandbox.files().glob(request, longest_wait(call), call.limit(longest_wait(call)));
  if (!found) {
    return mcp::error_result(found.error());
  }
  const ShownPaths paths(start.given, call.sandbox.files().base(), found->path);
  ToolResult result;
  ShownPart part{request.offset, found->shown, found->totals.more && !max};
  result.structured = {{"path", found->path}, {"files", mcp::json::array()}};
  result.text = found->entries.empty() ? "No files found\n" : "";
  std::uint64_t shown = 0;
  for (const sandbox::FileEntry& entry : found->entries) {
    const std::string path = paths.of(entry.path);
    if (!max && result.text.size() + path.size() > k_usual_reply_bytes - k_reply_reserve && shown > 0) {
      part.is_shortened = true;
      part.count = shown;
      break;
    }
    ++shown;
    result.text += path + "\n";
    result.structured["files"].push_back(entry_fields(entry, path, true));
  }
  result.text.pop_back();
  add_totals(found->totals, part, "files", paths, result);
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
  tool.meta = client_meta(/*always_load=*/false, k_max_result_chars);
  tool.annotations = {.read_only = true, .destructive = false, .idempotent = true, .open_world = false};
  return {std::move(tool), find};
}

}  // namespace dockbridge::tools
