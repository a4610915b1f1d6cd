#include <fmt/format.h>

#include <algorithm>

#include "tools/file_report.hpp"
#include "tools/following.hpp"
#include "tools/search_start.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::tools {

namespace file_edit {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::EditSet;
using sandbox::FileEdits;
using sandbox::TextEdit;
using wire::k_max_edits;

constexpr std::size_t k_max_named_files = 5;
constexpr std::string_view k_replacement_character = "\xEF\xBF\xBD";

ordered_json edit_properties() {
  return {{"filePath", path_schema()},
          {"oldString", {{"type", "string"}}},
          {"newString", {{"type", "string"}}},
          {"replaceAll", {{"type", "boolean"}}}};
}

ordered_json input_schema(const Settings& settings) {
  ordered_json properties = edit_properties();
  properties["edits"] = {{"type", "array"}, {"items", object_schema(edit_properties(), {"oldString", "newString"})}};
  properties["glob"] = {{"type", "string"}, {"description", "As src/**/*.ts"}};
  properties["preview"] = {{"type", "boolean"}, {"description", "Change nothing"}};
  properties["expectedRevision"] = revision_schema();
  return arguments_schema(std::move(properties), {}, settings);
}

ordered_json output_schema() {
  ordered_json properties = change_schema();
  properties["files"] = {{"type", "array"}, {"description", "with several files: these properties of each"}};
  return result_schema(std::move(properties));
}

TextEdit read_edit(Arguments& arguments, const char* step_without_text = "") {
  return {arguments.required_text("oldString", step_without_text), arguments.required_text("newString"),
          arguments.flag("replaceAll", false)};
}

/// An empty revision, which means "no file yet" to file_write, counts as absent.
std::optional<std::string> read_edit_revision(Arguments& arguments) {
  const auto revision = read_revision(arguments);
  return revision && revision->empty() ? std::nullopt : revision;
}

/// Adds an edit to those of its file.
void add_edit(std::vector<FileEdits>& files, std::string path, TextEdit edit) {
  auto file = std::find_if(files.begin(), files.end(), [&](const FileEdits& it) { return it.path == path; });
  if (file == files.end()) {
    file = files.insert(files.end(), FileEdits{std::move(path), {}});
  }
  file->edits.push_back(std::move(edit));
}

std::vector<FileEdits> read_edits(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  std::vector<FileEdits> files;
  if (!arguments.has("edits")) {
    add_edit(files, read_path(call, "filePath"),
             read_edit(arguments,
                       "Call again with oldString and newString, or with edits, a list of them. "
                       "With glob in place of filePath, all matching files are edited"));
    return files;
  }
  const auto usual_path = arguments.text("filePath");
  std::size_t count = 0;
  for (Arguments& nested : arguments.objects("edits")) {
    const std::string path = usual_path && !nested.has("filePath") ? *usual_path : nested.required_text("filePath");
    if (path.empty()) {
      nested.reject("filePath", "must not be empty");
    }
    add_edit(files, absolute_path(call, "filePath", path), read_edit(nested));
    arguments.adopt(nested);
    ++count;
  }
  if (arguments.has("oldString") || arguments.has("newString")) {
    arguments.reject("edits", "must not be combined with oldString and newString");
  }
  if (count == 0 || count > k_max_edits) {
    arguments.reject("edits", fmt::format("must have 1 to {} entries", k_max_edits));
  }
  return files;
}

std::string_view longest_line(std::string_view text) {
  std::string_view longest;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view shown = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
    longest = shown.size() > longest.size() ? shown : longest;
  }
  return longest;
}

/// The files of a replacement.
struct FoundFiles {
  std::vector<FileEdits> edits;
  std::vector<std::string> remarks;  ///< lines about files that were passed over
  std::uint64_t searched = 0;        ///< text files that match the glob
};

/// Files that match the glob and have the longest line of the text. A name that is not UTF-8 cannot be used in a
/// request, because the agent has replaced bytes by U+FFFD.
Result<FoundFiles> find_files(const ToolRequest& call, const SearchStart& start, std::vector<std::string> globs,
                              const TextEdit& edit) {
  sandbox::FileGrepRequest request;
  request.path = start.path;
  request.pattern = std::string(longest_line(edit.old_text));
  request.literal = true;
  request.include = std::move(globs);
  request.output = wire::GrepOutput::files;
  request.max = wire::k_max_set_files;
  const Heartbeat heartbeat(call.context, "searching");
  const auto found = call.sandbox.files().grep(request, longest_wait(call), call.limit(longest_wait(call)));
  if (!found) {
    return fail(found.error());
  }
  if (found->totals.total > wire::k_max_set_files || found->totals.more) {
    return fail(ErrorCode::too_many_files,
                found->totals.total > wire::k_max_set_files
                    ? fmt::format("Too many files: {} of at most {}", found->totals.total, wire::k_max_set_files)
                    : "The names of the files are too long for one replacement",
                "Use a narrower glob");
  }
  const ShownPaths paths(start.given, call.sandbox.files().base(), found->path);
  FoundFiles files{{}, passed_over(found->totals, paths, found->binary_skipped), found->files_searched};
  std::size_t unnamed = 0;
  for (const sandbox::FoundInFile& file : found->files) {
    if (file.path.find(k_replacement_character) == std::string::npos) {
      files.edits.push_back({joined_path(request.path, file.path), {{edit.old_text, edit.new_text, true}}});
    } else if (++unnamed <= k_max_named_files) {
      files.remarks.push_back("[left out, the name is not UTF-8: " + printable_line(paths.of(file.path), 200) + "]");
    }
  }
  if (unnamed > k_max_named_files) {
    files.remarks.push_back(fmt::format("[{} more such names left out]", unnamed - k_max_named_files));
  }
  return files;
}

Error nothing_to_replace(const std::string& glob, const FoundFiles& files) {
  const std::string name = printable_line(glob, 200);
  const bool is_glob_wrong = files.searched == 0;
  std::string message = is_glob_wrong
                            ? "No text file matches " + name
                            : fmt::format("oldString is not in the {} that {} {}", counted(files.searched, "file"),
                                          files.searched == 1 ? "matches" : "match", name);
  for (const std::string& remark : files.remarks) {
    message += "\n" + remark;
  }
  return {ErrorCode::no_match, std::move(message),
          is_glob_wrong
              ? "Correct the glob. A relative one starts at the workdir. Files that .gitignore ignores, hidden "
                "and binary files do not count"
              : "Copy oldString exactly from one of the files. file_grep finds a line of it"};
}

ToolResult replace(const ToolRequest& call, EditSet set) {
  const std::string glob = call.arguments.required_text("glob");
  std::vector<std::string> globs = {glob};
  const SearchStart start = search_start(call, std::nullopt, "glob", globs);
  if (glob.empty()) {
    call.arguments.reject("glob", "must not be empty");
  }
  if (call.arguments.has("filePath") || call.arguments.has("edits")) {
    call.arguments.reject("glob", "must not be combined with filePath or edits");
  }
  const TextEdit edit = read_edit(call.arguments);
  if (longest_line(edit.old_text).empty()) {
    call.arguments.reject("oldString", "must have a line that is not empty");
  }
  if (read_edit_revision(call.arguments)) {
    call.arguments.reject("expectedRevision", "must not be combined with glob");
  }
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  set.is_replacement = true;
  auto files = find_files(call, start, std::move(globs), edit);
  if (!files) {
    return mcp::error_result(files.error());
  }
  set.files = std::move(files->edits);
  const Error nothing = nothing_to_replace(glob, *files);
  const auto edited = set.files.empty() ? fail(nothing) : call.sandbox.files().edit_all(set, call.limit());
  if (!edited || edited->empty()) {
    return mcp::error_result(edited ? nothing : edited.error());
  }
  return report_changes(call, *edited, set.preview, files->remarks);
}

ToolResult edit(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  EditSet set;
  set.owner = call.context.owner;
  set.match_is_enough = call.settings.match_is_read;
  set.preview = arguments.flag("preview", false);
  if (arguments.has("glob")) {
    return replace(call, std::move(set));
  }
  set.files = read_edits(call);
  const auto expected = read_edit_revision(arguments);
  if (expected && set.files.size() > 1) {
    arguments.reject("expectedRevision", "must not be combined with edits of several files");
  }
  if (set.files.size() > wire::k_max_set_files) {
    arguments.reject("edits", fmt::format("must be about at most {} files", wire::k_max_set_files));
  }
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  set.files.front().expected_revision = expected;
  if (set.files.size() > 1 || set.preview) {
    const auto edited = call.sandbox.files().edit_all(set, call.limit());
    return edited ? report_changes(call, *edited, set.preview) : mcp::error_result(edited.error());
  }
  const FileEdits& file = set.files.front();
  const auto edited =
      call.sandbox.files().edit({file.path, set.owner, expected, set.match_is_enough}, file.edits, call.limit());
  return edited ? report_change(call, *edited, "Edited") : mcp::error_result(edited.error());
}

}  // namespace file_edit

const ToolCode k_file_edit{file_edit::input_schema, file_edit::output_schema, file_edit::edit};

}  // namespace dockbridge::tools
