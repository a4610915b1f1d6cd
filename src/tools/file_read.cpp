#include <fmt/format.h>

#include <algorithm>

#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"
#include "util/encoding.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace file_read {

using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::FileKind;
using sandbox::ReadFile;
using wire::LineEnds;

constexpr std::int64_t k_max_limit = 20'000;
constexpr std::int64_t k_max_column = 1'000'000'000'000;
/// Pixels on the longer side of an image. Models scale larger images down.
constexpr std::uint32_t k_max_image_side = 1568;
constexpr std::int64_t k_max_offset = 1'000'000'000'000;
/// Bytes of an image; clients reject larger ones.
constexpr std::uint64_t k_max_image_bytes = 3'500'000;

ordered_json input_schema(const Settings& settings) {
  return arguments_schema({{"filePath", path_schema()},
                           {"offset", {{"type", "integer"}, {"description", "Lines to skip; negative: from the end"}}},
                           {"limit", {{"type", "integer"}, {"description", "Lines"}}},
                           {"column", {{"type", "integer"}, {"description", "Characters to skip in the first line"}}},
                           {"scale", {{"type", "boolean"}, {"description", "false: image in full size"}}}},
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
  constexpr std::size_t k_default_digits = 5;
  std::string text;
  text.reserve(file.text.size() + file.lines * (k_default_digits + 1));
  std::int64_t number = file.first_line;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const fmt::format_int digits(number++);
    text.append(digits.data(), digits.size()).push_back('\t');
    text.append(rest.substr(0, end)).push_back('\n');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return text;
}

std::vector<std::string> remarks(const ReadFile& file) {
  std::vector<std::string> remarks;
  if (file.encoding != wire::name_of(wire::Encoding::utf8)) {
    remarks.push_back("the file is stored as " + file.encoding + ", which changes keep");
  }
  if (file.line_ends == LineEnds::crlf || file.line_ends == LineEnds::mixed) {
    remarks.emplace_back(file.line_ends == LineEnds::crlf
                             ? "lines end with CRLF, which edits keep"
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

/// "lines 1-240 of 900; offset: 240 reads on"; empty if the page is the whole file.
std::string position(const ReadFile& file) {
  if (!file.more && file.first_line == 1) {
    return "";
  }
  const auto last = file.first_line + static_cast<std::int64_t>(file.lines) - 1;
  std::string text = file.lines == 1       ? fmt::format("line {}", last)
                     : file.first_line > 0 ? fmt::format("lines {}-{}", file.first_line, last)
                                           : fmt::format("lines {} to {}", file.first_line, last);
  text += file.total_lines ? fmt::format(" of {}", *file.total_lines) : "";
  return file.more && file.first_line > 0 ? fmt::format("{}; offset: {} reads on", text, last) : text;
}

/// `is_shortened`: the page ends before the requested end.
ToolResult text_result(ReadFile file, std::uint64_t column, bool is_shortened) {
  ToolResult result;
  std::string facts;
  if (file.size == 0) {
    result.text = "(the file is empty)\n";
  } else if (file.lines == 0) {
    result.text = file.total_lines
                      ? fmt::format("(no such lines: the file has {})\n", counted(*file.total_lines, "line"))
                      : std::string("(no such lines: the file ends before them)\n");
  } else {
    facts = position(file);
    result.text = (is_shortened && !facts.empty() ? "[" + facts + "]\n" : "") + numbered(file);
    if (column > 0 && file.text.starts_with('\n')) {
      result.text += fmt::format("(line {} ends before column {})\n", file.first_line, column);
    }
  }
  if (!file.revision.empty()) {
    facts += (facts.empty() ? "revision " : "; revision ") + short_revision(file.revision);
  }
  if (facts.empty()) {
    result.text.pop_back();
  } else {
    result.text += "[" + facts + "]";
  }
  result.text = with_notes(std::move(result.text), remarks(file));
  if (!file.previous_revision.empty()) {
    result.text += "\nThe file has changed since the previous page (revision " +
                   short_revision(file.previous_revision) + "). Read it again from the start.";
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
                       {"lineEnds", name_of(file.line_ends)},
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

Error changed_meanwhile(const std::string& path) {
  return {ErrorCode::file_changed, "The file changed while it was read: " + printable_line(path, 500), "Read it again"};
}

ToolResult binary_result(const ReadFile& file, const std::string& shown_path) {
  ToolResult result;
  result.facts = {{"revision", file.revision}};
  result.structured = {{"path", file.path},
                       {"kind", file.kind == FileKind::image ? "image" : "binary"},
                       {"type", file.type},
                       {"size", file.size},
                       {"revision", file.revision}};
  result.text = fmt::format("{} is {}, {}", shown_path, file.type, human_bytes(file.size));
  if (file.kind == FileKind::binary) {
    result.text += "\nIt is not text. Look into it with a command, for example: file, xxd | head, strings, tar tf.";
  }
  return result;
}

/// Adds the image to a result, scaled down if it is larger than models see. `path` is the requested one: the real path
/// may not be UTF-8 and could then not be sent.
Result<void> add_image(const ToolRequest& call, const std::string& path, const ReadFile& file, bool scale,
                       ToolResult& result) {
  const auto add = [&](const std::string& bytes, const std::string& type) {
    result.more_content.push_back({{"type", "image"}, {"data", to_base64(bytes)}, {"mimeType", type}});
  };
  const bool is_large = std::max(file.width, file.height) > k_max_image_side;
  const bool is_scalable = file.width > 0 && (file.type == "image/png" || file.type == "image/jpeg");
  if (scale && is_scalable && (is_large || file.size > k_max_image_bytes)) {
    const auto scaled = call.sandbox.files().scaled_image(path, call.context.owner, k_max_image_side, call.limit());
    if (scaled && scaled->revision != file.revision && !file.revision.empty()) {
      return fail(changed_meanwhile(path));
    }
    if (scaled) {
      result.text +=
          is_large ? fmt::format(", scaled from {}x{} to {}x{}", file.width, file.height, scaled->width, scaled->height)
                   : fmt::format(", shown as {} of {}", scaled->type, human_bytes(scaled->bytes.size()));
      add(scaled->bytes, scaled->type);
      return {};
    }
    if (scaled.error().code != ErrorCode::bad_image && scaled.error().code != ErrorCode::too_large) {
      return fail(scaled.error());
    }
    result.text += "\nIt was not scaled: " + scaled.error().sentence();
    return {};
  }
  if (file.size > k_max_image_bytes) {
    result.text += "\nIt is too large to be shown; make a smaller copy with a command.";
    return {};
  }
  const auto whole = call.sandbox.files().whole(path, call.context.owner, k_max_image_bytes, call.limit());
  if (!whole) {
    return fail(whole.error());
  }
  if (whole->revision != file.revision) {
    return fail(changed_meanwhile(path));
  }
  if (scale && is_large) {
    result.text += fmt::format(", {}x{}\nIt was not scaled: only PNG and JPEG images are.", file.width, file.height);
  }
  add(whole->bytes, file.type);
  return {};
}

ToolResult read(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  sandbox::ReadRequest request;
  request.path = read_path(call, "filePath");
  request.owner = call.context.owner;
  // Gemini CLI passes the first and the last line, counted from 1.
  const std::int64_t first_line = arguments.integer("start_line", 1, k_max_offset).value_or(1);
  const auto last_line = arguments.integer("end_line", first_line, k_max_offset);
  arguments.keep_unlisted("start_line");
  arguments.keep_unlisted("end_line");
  request.offset = arguments.integer("offset", -k_max_offset, k_max_offset).value_or(first_line - 1);
  request.column = static_cast<std::uint64_t>(arguments.integer("column", 0, k_max_column).value_or(0));
  auto limit = arguments.integer("limit", 1, k_max_limit);
  if (!limit && last_line) {
    limit = std::min(*last_line - first_line + 1, k_max_limit);
  }
  const std::size_t usual_lines = request.column > 0 ? 1 : k_default_reply_lines;
  request.limit = limit ? static_cast<std::size_t>(*limit) : usual_lines;
  if (!limit) {
    request.max_bytes = k_default_reply_bytes - k_reply_reserve;
  }
  const bool scale = arguments.flag("scale", true);
  const std::string given = arguments.text("filePath").value_or("");
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  auto file = call.sandbox.files().read(request, call.limit());
  if (!file) {
    return mcp::error_result(file.error());
  }
  if (file->kind == FileKind::text) {
    const bool is_shortened = file->more && (!limit || file->lines < request.limit) && request.column == 0;
    return text_result(std::move(*file), request.column, is_shortened);
  }
  ToolResult result = binary_result(*file, ShownPaths(given, call.sandbox.files().base(), file->path).of(""));
  if (file->kind == FileKind::image) {
    if (auto added = add_image(call, request.path, *file, scale, result); !added) {
      return mcp::error_result(added.error());
    }
  }
  return result;
}

}  // namespace file_read

const ToolCode k_file_read{file_read::input_schema, file_read::output_schema, file_read::read};

}  // namespace dockbridge::tools
