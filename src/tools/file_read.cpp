#include <fmt/format.h>

#include <algorithm>

#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/toolbox.hpp"
#include "util/encoding.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::FileKind;
using sandbox::ReadFile;

constexpr std::int64_t k_usual_limit = 2000;
constexpr std::int64_t k_largest_limit = 20'000;
constexpr std::int64_t k_largest_offset = 1'000'000'000'000;
/// What models are shown of a picture; clients refuse larger ones.
constexpr std::uint64_t k_largest_image_bytes = 3'500'000;

constexpr const char* k_description =
    "Read a text file with line numbers, or an image. Relative paths start at the workdir. Files must be read before "
    "they are changed.";

ordered_json input_schema(const Settings& settings) {
  return arguments_schema({{"filePath", path_schema()},
                           {"offset", {{"type", "integer"}, {"description", "Lines to skip; negative: from the end"}}},
                           {"limit", {{"type", "integer"}, {"description", "Lines"}}}},
                          {"filePath"}, settings);
}

ordered_json output_schema() {
  const ordered_json text = {{"type", "string"}};
  const ordered_json number = {{"type", "integer"}};
  return result_schema({{"path", text},
                        {"kind", {{"type", "string"}, {"enum", {"text", "image", "binary"}}}},
                        {"type", text},
                        {"size", number},
                        {"revision", {{"type", "string"}, {"description", "names the content; for expectedRevision"}}},
                        {"previousRevision",
                         {{"type", "string"}, {"description", "revision of the page before, if the file has changed"}}},
                        {"content", {{"type", "string"}, {"description", "the lines, without numbers"}}},
                        {"firstLine", number},
                        {"lines", number},
                        {"totalLines", number},
                        {"more", {{"type", "boolean"}}},
                        {"nextOffset", number},
                        {"cutLines", {{"type", "integer"}, {"description", "lines too long to be shown whole"}}},
                        {"encoding", text},
                        {"lineEnds", {{"type", "string"}, {"enum", {"none", "lf", "crlf", "mixed"}}}},
                        {"finalNewline", {{"type", "boolean"}}}});
}

std::string numbered(const ReadFile& file) {
  constexpr std::size_t k_width = 6;
  std::string text;
  text.reserve(file.text.size() + file.lines * (k_width + 2));
  std::int64_t number = file.first_line;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const fmt::format_int digits(number++);
    text.append(k_width - std::min(k_width, digits.size()), ' ').append(digits.data(), digits.size()).push_back('\t');
    text.append(rest.substr(0, end)).push_back('\n');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return text;
}

std::vector<std::string> remarks(const ReadFile& file) {
  std::vector<std::string> remarks;
  if (file.cut_lines > 0) {
    remarks.push_back(fmt::format("{} lines were too long and were cut", file.cut_lines));
  }
  if (file.encoding != "utf-8") {
    remarks.push_back("the file is stored as " + file.encoding + ", which changes keep");
  }
  if (file.line_ends == "crlf" || file.line_ends == "mixed") {
    remarks.emplace_back(file.line_ends == "crlf" ? "lines end with CRLF, which edits keep"
                                                  : "some lines end with CRLF and some with LF; edits keep both");
  }
  if (!file.final_newline && !file.more) {
    remarks.emplace_back("the last line has no newline at its end");
  }
  if (file.revision.empty()) {
    remarks.push_back(
        fmt::format("a file of {} is too large to be changed by the file tools; use commands", human_bytes(file.size)));
  }
  return remarks;
}

ToolResult tell_text(ReadFile file) {
  ToolResult result;
  const std::string of_total = file.total_lines ? fmt::format(" of {}", *file.total_lines) : "";
  if (file.size == 0) {
    result.text = "(the file is empty)";
  } else if (file.lines == 0) {
    result.text = file.total_lines ? fmt::format("(no such lines: the file has {})", *file.total_lines)
                                   : std::string("(no such lines: the file ends before them)");
  } else {
    result.text = numbered(file);
    const auto last = file.first_line + static_cast<std::int64_t>(file.lines) - 1;
    result.text += fmt::format("[lines {} to {}{}{}]", file.first_line, last, of_total,
                               file.more && file.first_line > 0 ? fmt::format("; read on with offset: {}", last) : "");
  }
  result.text = with_notes(std::move(result.text), remarks(file));
  if (!file.previous_revision.empty()) {
    result.text += "\nThe file has changed since the previous page (revision " + file.previous_revision +
                   "). Read it again from the start.";
  }
  if (!file.revision.empty()) {
    result.text += "\nRevision: " + file.revision;
  }
  result.facts = {{"revision", file.revision}};
  result.structured = {{"path", file.path},
                       {"kind", "text"},
                       {"size", file.size},
                       {"revision", file.revision},
                       {"content", std::move(file.text)},
                       {"firstLine", file.first_line},
                       {"lines", file.lines},
                       {"more", file.more},
                       {"cutLines", file.cut_lines},
                       {"encoding", file.encoding},
                       {"lineEnds", file.line_ends},
                       {"finalNewline", file.final_newline}};
  if (!file.previous_revision.empty()) {
    result.structured["previousRevision"] = file.previous_revision;
  }
  if (file.total_lines) {
    result.structured["totalLines"] = *file.total_lines;
  }
  if (file.more && file.first_line > 0) {
    result.structured["nextOffset"] = file.first_line - 1 + static_cast<std::int64_t>(file.lines);
  }
  return result;
}

ToolResult tell_other(const ToolCall& call, const std::string& path, const ReadFile& file) {
  ToolResult result;
  result.facts = {{"revision", file.revision}};
  result.structured = {{"path", file.path},
                       {"kind", file.kind == FileKind::image ? "image" : "binary"},
                       {"type", file.type},
                       {"size", file.size},
                       {"revision", file.revision}};
  result.text = fmt::format("{} is {}, {}", printable_line(file.path, 500), file.type, human_bytes(file.size));
  if (file.kind == FileKind::binary) {
    result.text += "\nIt is not text. Look into it with a command, for example: file, xxd | head, strings, tar tf.";
    return result;
  }
  if (file.size > k_largest_image_bytes) {
    result.text += "\nIt is too large to be shown; make a smaller copy with a command.";
    return result;
  }
  // Use the requested path. The real path may not be UTF-8 and could then not be sent.
  const auto whole = call.sandbox.files().whole(path, call.context.owner, k_largest_image_bytes, call.limit());
  if (!whole) {
    return mcp::error_result(whole.error());
  }
  if (whole->revision != file.revision) {
    return mcp::error_result(
        {"file_changed", "The file changed while it was read: " + printable_line(path, 500), "Read it again"});
  }
  result.more_content.push_back({{"type", "image"}, {"data", to_base64(whole->bytes)}, {"mimeType", file.type}});
  return result;
}

ToolResult read(const ToolCall& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  sandbox::ReadRequest request;
  request.path = read_path(call, "filePath");
  request.owner = call.context.owner;
  request.offset = arguments.integer("offset", -k_largest_offset, k_largest_offset).value_or(0);
  request.limit = static_cast<std::size_t>(arguments.integer("limit", 1, k_largest_limit).value_or(k_usual_limit));
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  auto file = call.sandbox.files().read(request, call.limit());
  if (!file) {
    return mcp::error_result(file.error());
  }
  return file->kind == FileKind::text ? tell_text(std::move(*file)) : tell_other(call, request.path, *file);
}

}  // namespace

ToolPlan file_read(const Settings& settings) {
  mcp::Tool tool;
  tool.name = "file_read";
  tool.title = "Read a file";
  tool.description = k_description;
  tool.input_schema = input_schema(settings);
  tool.output_schema = output_schema();
  tool.meta = client_meta(/*always_load=*/true, k_max_result_chars);
  tool.annotations = {.read_only = true, .destructive = false, .idempotent = true, .open_world = false};
  return {std::move(tool), read};
}

}  // namespace dockbridge::tools
