#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "tools/file_report.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"
#include "util/encoding.hpp"
#include "util/text.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::tools {

namespace file_write {

using mcp::ordered_json;
using mcp::ToolResult;

/// Those of text, and base64.
std::vector<std::string_view> encodings() {
  std::vector<std::string_view> names(wire::k_names<wire::Encoding>.begin(), wire::k_names<wire::Encoding>.end());
  names.emplace_back("base64");
  return names;
}

ordered_json input_schema(const Settings& settings) {
  return arguments_schema(
      {{"filePath", path_schema()},
       {"content", {{"type", "string"}}},
       {"encoding", {{"type", "string"}, {"enum", encodings()}, {"description", "base64: content is decoded"}}},
       {"mode", {{"type", "string"}, {"description", "Octal permissions"}}},
       {"expectedRevision", revision_schema()}},
      {"filePath", "content"}, settings);
}

ordered_json output_schema() {
  return result_schema(change_schema());
}

std::optional<unsigned> read_mode(Arguments& arguments) {
  const auto text = arguments.text("mode");
  if (!text) {
    return std::nullopt;
  }
  unsigned mode = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, mode, 8);
  if (parsed.ec != std::errc() || parsed.ptr != end || mode > wire::k_permissions) {
    arguments.reject("mode",
                     fmt::format("must be octal permissions such as \"0644\", got {}", printable_line(*text, 40)));
    return std::nullopt;
  }
  return mode;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.find_first_of("\r\n") == std::string_view::npos) {
    return from_base64(text);
  }
  std::string joined(text);  // many programs break it into lines
  std::erase_if(joined, [](char c) { return c == '\n' || c == '\r'; });
  return from_base64(joined);
}

ToolResult write(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  read_rationale(arguments, call.settings);
  const sandbox::ChangeRequest request = read_change_request(call);
  const std::string_view given = arguments.required_view("content");
  sandbox::NewContent content;
  content.mode = read_mode(arguments);
  const std::string encoding = arguments.text("encoding").value_or("");
  const bool is_base64 = encoding == "base64";
  content.encoding = wire::value_named<wire::Encoding>(encoding);
  if (!encoding.empty() && !is_base64 && !content.encoding) {
    arguments.reject("encoding", fmt::format("must be one of {}, got {}", fmt::join(encodings(), ", "),
                                             printable_line(encoding, 40)));
  }
  std::optional<std::string> decoded;
  if (is_base64) {
    decoded = decode_base64(given);
    if (!decoded) {
      arguments.reject("content", "is not valid base64");
    }
    content.is_text = false;
  }
  if (arguments.error()) {
    return mcp::error_result(*arguments.error());
  }
  content.bytes = decoded ? *decoded : given;
  const auto written = call.sandbox.files().write(request, content, call.limit());
  return written ? report_change(call, *written, written->before.empty() ? "Created" : "Wrote")
                 : mcp::error_result(written.error());
}

}  // namespace file_write

const ToolCode k_file_write{file_write::input_schema, file_write::output_schema, file_write::write};

}  // namespace dockbridge::tools
