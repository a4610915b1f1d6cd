#include <fmt/format.h>

#include "tools/file_report.hpp"
#include "tools/following.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace file_ls {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::FileEntry;
using wire::FileType;

constexpr std::int64_t k_default_results = 200;
constexpr std::int64_t k_max_results = 5000;
constexpr std::int64_t k_max_depth = 100;
constexpr std::int64_t k_max_offset = 1'000'000'000;

ordered_json input_schema(const Settings& settings) {
  const ordered_json integer = {{"type", "integer"}};
  return arguments_schema(
      {{"path", {{"type", "string"}, {"description", "Default: the workdir"}}},
       {"ignore", {{"type", "array"}, {"items", {{"type", "string"}}}, {"description", "Globs to leave out"}}},
       {"depth", {{"type", "integer"}, {"description", "Levels (default 1)"}}},
       {"details", {{"type", "boolean"}, {"description", "Mode, size, time"}}},
       {"gitignore", {{"type", "boolean"}, {"description", "Leave out ignored files (default false)"}}},
       {"offset", integer},
       {"limit", {{"type", "integer"}, {"description", fmt::format("Default {}", k_default_results)}}}},
      {}, settings);
}

ordered_json output_schema() {
  ordered_json properties = {{"path", {{"type", "string"}}},
                             {"entries", {{"type", "array"}, {"items", entry_schema()}}}};
  add_totals_schema(properties);
  return result_schema(std::move(properties));
}

std::string mode_text(const FileEntry& entry) {
  std::string text = entry.type == FileType::directory ? "d"
                     : entry.type == FileType::symlink ? "l"
                     : entry.type == FileType::regular ? "-"
                                                       : "?";
  unsigned bit = 0400;
  for (const char right : std::string_view("rwxrwxrwx")) {
    text.push_back((entry.mode.value_or(0) & bit) != 0 ? right : '-');
    bit >>= 1U;
  }
  return text;
}

std::string line_of(const FileEntry& entry, std::string name, const mcp::json& fields) {
  if (entry.type == FileType::directory) {
    name += "/";
  } else if (entry.type == FileType::symlink) {
    name += " -> " + printable_line(entry.target, 4096);
  } else if (entry.type != FileType::regular) {
    name += fmt::format(" ({})", wire::name_of(entry.type));
  }
  const auto time = fields.find("modifiedAt");
  return time == fields.end()
             ? name + "\n"
             : fmt::format("{} {} {} {}\n", mode_text(entry), entry.size, time->get_ref<const std::string&>(), name);
}

ToolResult list(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  sandbox::ListRequest request;
  request.path = read_optional_path(call, "path");
  request.ignore = arguments.texts("ignore");
  request.depth = static_cast<std::uint32_t>(arguments.integer("depth", 1, k_max_depth).value_or(1));
  request.honour_ignore_files = arguments.flag("gitignore", false);
  request.offset = static_cast<std::uint64_t>(arguments.integer("offset", 0, k_max_offset).value_or(0));
  const auto max = arguments.integer("limit", 1, k_max_results);
  request.max = static_cast<std::size_t>(max.value_or(k_default_results));
  const bool is_raised = request.max > k_default_results;
  const std::string given = arguments.text("path").value_or("");
  request.details = arguments.flag("details", false);
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  const auto listing = call.sandbox.files().list(request, longest_wait(call), call.limit(longest_wait(call)));
  if (!listing) {
    return mcp::error_result(listing.error());
  }
  const ShownPaths paths(given, call.sandbox.files().base(), listing->path);
  ToolResult result;
  ShownPart part{request.offset, listing->shown, listing->totals.more && !max};
  result.structured = {{"path", listing->path}, {"entries", mcp::json::array()}};
  mcp::json& entries = result.structured["entries"];
  for (const FileEntry& entry : listing->entries) {
    const std::string path = paths.of(entry.path);
    mcp::json fields = entry_fields(entry, path, request.details);
    const std::string line = line_of(entry, path, fields);
    if (!is_raised && result.text.size() + line.size() > k_default_reply_bytes - k_reply_reserve && !entries.empty()) {
      part.is_shortened = true;
      part.count = entries.size();
      break;
    }
    result.text += line;
    entries.push_back(std::move(fields));
  }
  if (result.text.empty()) {
    result.text =
        fmt::format("{} in {}\n", listing->totals.total == 0 ? "No entries" : "No more entries", paths.of(""));
  }
  result.text.pop_back();
  add_totals(listing->totals, part, "entries", paths, result);
  return result;
}

}  // namespace file_ls

const ToolCode k_file_ls{file_ls::input_schema, file_ls::output_schema, file_ls::list};

}  // namespace dockbridge::tools
