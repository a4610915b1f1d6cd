#include <fmt/format.h>

#include <algorithm>

#include "tools/file_report.hpp"
#include "tools/following.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::EditSet;
using sandbox::FileEdits;
using sandbox::TextEdit;

constexpr std::size_t k_max_edits = 1000;

constexpr const char* k_description =
    "Replace text in files. oldString must be there exactly once, unless replaceAll is true. edits makes several "
    "replacements, in one or several files, all or none. glob instead of filePath replaces oldString everywhere in the "
    "matching files; preview first. The reply is a diff. file_undo takes a change back.";

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

TextEdit read_edit(Arguments& arguments) {
  return {arguments.required_text("oldString"), arguments.required_text("newString"),
          arguments.flag("replaceAll", false)};
}

/// Adds an edit to those of its file.
void add_edit(std::vector<FileEdits>& files, std::string path, TextEdit edit) {
  auto file = std::find_if(files.begin(), files.end(), [&](const FileEdits& it) { return it.path == path; });
  if (file == files.end()) {
    file = files.insert(files.end(), FileEdits{std::move(path), {}});
  }
  file->edits.push_back(std::move(edit));
}

std::vector<FileEdits> read_edits(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  std::vector<FileEdits> files;
  if (!arguments.has("edits")) {
    add_edit(files, read_path(call, "filePath"), read_edit(arguments));
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

/// The glob relative to the directory that relative paths start at.
std::string read_glob(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  std::string glob = arguments.required_text("glob");
  const std::string start = call.sandbox.files().base() + "/";
  for (const std::string& prefix : {start, std::string("./")}) {
    if (glob.starts_with(prefix)) {
      glob.erase(0, prefix.size());
    }
  }
  if (glob.empty() || glob.starts_with('/') || glob.starts_with("../")) {
    arguments.reject("glob", "must be relative to the workdir");
  }
  if (arguments.has("filePath") || arguments.has("edits")) {
    arguments.reject("glob", "must not be combined with filePath or edits");
  }
  return glob;
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

/// The files that a replacement is about: those that match the glob and have the longest line of its text.
Result<std::vector<FileEdits>> find_files(const ToolCall& call, const std::string& glob, const TextEdit& edit) {
  sandbox::FileGrepRequest request;
  request.path = call.sandbox.files().base();
  request.pattern = std::string(longest_line(edit.old_text));
  request.literal = true;
  request.include = {glob};
  request.output = "files";
  request.max = wire::k_max_set_files;
  const Heartbeat heartbeat(call.context, "searching");
  const auto found = call.sandbox.files().grep(request, longest_wait(call), call.limit(longest_wait(call)));
  if (!found) {
    return fail(found.error());
  }
  if (found->totals.total > wire::k_max_set_files) {
    return fail(ErrorCode::too_many_files,
                fmt::format("Too many files: {} of at most {}", found->totals.total, wire::k_max_set_files),
                "Use a narrower glob");
  }
  std::vector<FileEdits> files;
  for (const sandbox::FoundInFile& file : found->files) {
    files.push_back({request.path + "/" + file.path, {{edit.old_text, edit.new_text, true}}});
  }
  return files;
}

Error no_file_matches(const std::string& glob) {
  return {ErrorCode::no_match, "No file that matches " + printable_line(glob, 200) + " contains oldString",
          "Files that .gitignore ignores, hidden and binary files are not searched"};
}

ToolResult replace(const ToolCall& call, EditSet set) {
  const std::string glob = read_glob(call);
  const TextEdit edit = read_edit(call.arguments);
  if (longest_line(edit.old_text).empty()) {
    call.arguments.reject("oldString", "must have a line that is not empty");
  }
  if (call.arguments.has("expectedRevision")) {
    call.arguments.reject("expectedRevision", "must not be combined with glob");
  }
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  set.is_replacement = true;
  auto files = find_files(call, glob, edit);
  if (!files) {
    return mcp::error_result(files.error());
  }
  set.files = std::move(*files);
  const auto edited =
      set.files.empty() ? fail(no_file_matches(glob)) : call.sandbox.files().edit_all(set, call.limit());
  if (!edited || edited->empty()) {
    return mcp::error_result(edited ? no_file_matches(glob) : edited.error());
  }
  return tell_changes(call, *edited, set.preview, k_usual_reply_bytes - k_reply_reserve);
}

ToolResult edit(const ToolCall& call) {
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
  const auto expected = read_revision(arguments);
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
    return edited ? tell_changes(call, *edited, set.preview, k_usual_reply_bytes - k_reply_reserve)
                  : mcp::error_result(edited.error());
  }
  const FileEdits& file = set.files.front();
  const auto edited =
      call.sandbox.files().edit({file.path, set.owner, expected, set.match_is_enough}, file.edits, call.limit());
  return edited ? tell_change(call, *edited, "Edited") : mcp::error_result(edited.error());
}

}  // namespace

ToolPlan file_edit(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_edit";
  tool.title = "Edit a file";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  ordered_json properties = change_schema();
  properties["files"] = {{"type", "array"}, {"description", "the same of each, if they are several"}};
  tool.output_schema = result_schema(std::move(properties));
  tool.meta = client_meta(/*always_load=*/true, 0);
  tool.annotations = {.read_only = false, .destructive = true, .idempotent = false, .open_world = false};
  return {std::move(tool), edit};
}

}  // namespace dockbridge::tools
