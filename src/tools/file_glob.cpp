#include <fmt/format.h>

#include "tools/file_report.hpp"
#include "tools/following.hpp"
#include "tools/search_start.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"

namespace dockbridge::tools {

namespace file_glob {

using mcp::ordered_json;
using mcp::ToolResult;

constexpr std::size_t k_default_results = 100;
constexpr std::size_t k_max_results = 5000;
constexpr std::int64_t k_max_offset = 1'000'000'000;

ordered_json input_schema(const Settings& settings) {
  const ordered_json flag = {{"type", "boolean"}};
  return arguments_schema(
      {{"pattern", {{"type", "string"}}},
       {"path", {{"type", "string"}, {"description", "Default: the workdir"}}},
       {"newestFirst", flag},
       {"hidden", {{"type", "boolean"}, {"description", "Include hidden files"}}},
       {"gitignore", {{"type", "boolean"}, {"description", "false includes ignored files"}}},
       {"offset", {{"type", "integer"}}},
       {"maxResults", {{"type", "integer"}, {"description", fmt::format("Default {}", k_default_results)}}}},
      {"pattern"}, settings);
}

ordered_json output_schema() {
  ordered_json properties = {{"path", {{"type", "string"}}}, {"files", {{"type", "array"}, {"items", entry_schema()}}}};
  add_totals_schema(properties);
  return result_schema(std::move(properties));
}

ToolResult find(const ToolRequest& call) {
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
  request.offset = static_cast<std::uint64_t>(arguments.integer("offset", 0, k_max_offset).value_or(0));
  const auto max = read_max_results(arguments, k_max_results);
  request.max = max.value_or(k_default_results);
  const bool is_raised = request.max > k_default_results;
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
    if (!is_raised && result.text.size() + path.size() > k_default_reply_bytes - k_reply_reserve && shown > 0) {
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

}  // namespace file_glob

const ToolCode k_file_glob{file_glob::input_schema, file_glob::output_schema, file_glob::find};

}  // namespace dockbridge::tools
