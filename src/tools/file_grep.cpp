#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "tools/file_report.hpp"
#include "tools/following.hpp"
#include "tools/search_start.hpp"
#include "tools/tool_shape.hpp"
#include "tools/tool_table.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace file_grep {

using mcp::json;
using mcp::ordered_json;
using mcp::ToolResult;
using sandbox::FileGrepRequest;
using sandbox::FileGrepResult;
using sandbox::FoundInFile;
using sandbox::FoundLine;
using wire::GrepOutput;

constexpr std::size_t k_default_results = 100;
constexpr std::size_t k_max_results = 2000;
constexpr std::int64_t k_max_offset = 1'000'000'000;
/// Bytes of a shown line in addition to its text: the number, a colon and a newline.
constexpr std::size_t k_line_overhead = 12;

ordered_json input_schema(const Settings& settings) {
  const ordered_json flag = {{"type", "boolean"}};
  const ordered_json text = {{"type", "string"}};
  const auto described = [](ordered_json schema, const std::string& description) {
    schema["description"] = description;
    return schema;
  };
  return arguments_schema(
      {{"pattern", text},
       {"path", described(text, "Directory or file (default: the workdir)")},
       {"include", described(text, "Glob such as *.{ts,tsx}")},
       {"exclude", described(text, "Glob")},
       {"literal", described(flag, "The pattern is plain text")},
       {"caseInsensitive", flag},
       {"wholeWord", flag},
       {"multiLine", described(flag, "Matches may span lines")},
       {"context", {{"type", "integer"}, {"description", "Lines around each match"}}},
       {"output", {{"type", "string"}, {"enum", {"content", "files", "count"}}}},
       {"maxResults", {{"type", "integer"}, {"description", fmt::format("Default {}", k_default_results)}}},
       {"offset", {{"type", "integer"}}},
       {"gitignore", described(flag, "false includes ignored files")},
       {"hidden", described(flag, "Include hidden files")}},
      {"pattern"}, settings);
}

ordered_json output_schema() {
  const ordered_json text = {{"type", "string"}};
  const ordered_json number = {{"type", "integer"}};
  ordered_json properties = {{"path", text},
                             {"files",
                              {{"type", "array"},
                               {"items", object_schema({{"path", text},
                                                        {"matches", number},
                                                        {"lines",
                                                         {{"type", "array"},
                                                          {"items", object_schema({{"number", number},
                                                                                   {"text", text},
                                                                                   {"matches", {{"type", "boolean"}}},
                                                                                   {"column", number}},
                                                                                  {"number", "text", "matches"})}}}},
                                                       {"path"})}}},
                             {"filesWithMatches", number},
                             {"filesSearched", number},
                             {"binarySkipped", number}};
  add_totals_schema(properties);
  return result_schema(std::move(properties));
}

/// The names that ripgrep and Claude Code use are accepted too.
GrepOutput read_output_mode(Arguments& arguments) {
  const std::string given = arguments.text("output").value_or("content");
  const auto output = wire::value_named<GrepOutput>(given == "files_with_matches" ? "files" : given);
  if (!output) {
    arguments.reject("output", fmt::format("must be content, files or count, got {}", printable_line(given, 40)));
  }
  return output.value_or(GrepOutput::content);
}

/// Glob for a file type of ripgrep, which Claude Code passes as `type`. Any other type is a file name extension.
std::string glob_of_type(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> k_globs = {
      {{"c", "*.{c,h}"},
       {"cpp", "*.{cpp,cc,cxx,hpp,hh,hxx,h,inl}"},
       {"csharp", "*.cs"},
       {"html", "*.{html,htm}"},
       {"js", "*.{js,jsx,mjs,cjs}"},
       {"kotlin", "*.{kt,kts}"},
       {"markdown", "*.{md,markdown,mdx}"},
       {"md", "*.{md,markdown,mdx}"},
       {"py", "*.{py,pyi}"},
       {"python", "*.{py,pyi}"},
       {"ruby", "*.rb"},
       {"rust", "*.rs"},
       {"ts", "*.{ts,tsx,mts,cts}"},
       {"yaml", "*.{yaml,yml}"}}};
  const auto* const known =
      std::find_if(k_globs.begin(), k_globs.end(), [&](const auto& each) { return each.first == type; });
  return known == k_globs.end() ? "*." + type : std::string(known->second);
}

std::vector<std::string> read_include(Arguments& arguments) {
  std::vector<std::string> include = arguments.texts("include");
  const auto type = arguments.text("type");
  arguments.keep_unlisted("type");
  if (type && include.empty()) {
    include.push_back(glob_of_type(*type));
  }
  return include;
}

FileGrepRequest read_request(const ToolRequest& call) {
  Arguments& arguments = call.arguments;
  FileGrepRequest request;
  request.pattern = arguments.required_text("pattern");
  request.literal = arguments.flag("literal", false);
  request.ignore_case = arguments.flag("caseInsensitive", false);
  request.whole_word = arguments.flag("wholeWord", false);
  request.multi_line = arguments.flag("multiLine", false);
  request.include = read_include(arguments);
  request.exclude = arguments.texts("exclude");
  request.honour_ignore_files = arguments.flag("gitignore", true);
  request.hidden = arguments.flag("hidden", false);
  request.context = static_cast<std::size_t>(arguments.integer("context", 0, wire::k_max_context).value_or(0));
  request.output = read_output_mode(arguments);
  request.offset = static_cast<std::uint64_t>(arguments.integer("offset", 0, k_max_offset).value_or(0));
  request.max = read_max_results(arguments, k_max_results).value_or(k_default_results);
  if (request.pattern.empty()) {
    arguments.reject("pattern", "must not be empty");
  }
  return request;
}

std::string shown_text(const FoundLine& line) {
  std::string text = printable_text(line.text, line.text.size());
  if (line.cut_before > 0) {
    text = fmt::format("[{} bytes]...{}", line.cut_before, text);
  }
  return line.cut_after > 0 ? fmt::format("{}...[{} bytes]", text, line.cut_after) : text;
}

/// Collects matches until the reply is full.
class Report {
 public:
  Report(const FileGrepRequest& request, const ShownPaths& paths, std::size_t max_bytes)
      : m_request(request), m_paths(paths), m_max_bytes(max_bytes) {
    m_result.structured["files"] = json::array();
  }

  void add(const FoundInFile& file) {
    const std::string name = m_paths.of(file.path);
    json fields = {{"path", name}};
    if (m_request.output == GrepOutput::content) {
      add_lines(file, name, fields);
      return;
    }
    if (m_request.output == GrepOutput::count) {
      fields["matches"] = file.matches;
    }
    if (append(m_request.output == GrepOutput::files ? name + "\n" : fmt::format("{}: {}\n", name, file.matches))) {
      ++m_shown;
      m_result.structured["files"].push_back(std::move(fields));
    }
  }
  /// Whether something did not fit: the next matches, or context alone.
  [[nodiscard]] bool is_full() const { return m_full; }
  [[nodiscard]] bool is_context_cut() const { return m_context_cut; }
  /// Matching lines, or files.
  [[nodiscard]] std::uint64_t shown() const { return m_shown; }
  ToolResult take() { return std::move(m_result); }

 private:
  bool append(const std::string& text) {
    m_full = m_full || (m_result.text.size() + text.size() > m_max_bytes && m_shown > 0);
    m_result.text += m_full ? "" : text;
    return !m_full;
  }

  /// The first line to show of a file. As much context before its first match as after it, as far as it fits.
  [[nodiscard]] static std::size_t first_line(const std::vector<FoundLine>& lines, std::size_t room) {
    const auto match = static_cast<std::size_t>(
        std::find_if(lines.begin(), lines.end(), [](const FoundLine& line) { return line.matches; }) - lines.begin());
    const auto cost = [&](std::size_t at) {
      return at < lines.size() ? shown_text(lines[at]).size() + k_line_overhead : 0;
    };
    std::size_t bytes = cost(match);
    std::size_t reach = 0;
    while (reach < match && (bytes += cost(match - reach - 1) + cost(match + reach + 1)) <= room) {
      ++reach;
    }
    return match - reach;
  }

  void add_lines(const FoundInFile& file, const std::string& name, json& fields) {
    fields["matches"] = file.matches;
    const bool has_context = !file.lines.empty() && !file.lines.front().matches;
    std::uint64_t last = 0;
    const std::size_t room = m_max_bytes - std::min(m_max_bytes, m_result.text.size());
    const std::size_t first = m_shown == 0 && has_context ? first_line(file.lines, room) : 0;
    m_context_cut = m_context_cut || first > 0;
    for (const FoundLine& line : std::span(file.lines).subspan(first)) {
      const std::string start = last == 0 ? (m_result.text.empty() ? "" : "\n") + name + "\n"
                                : line.number > last + 1 && has_context ? "--\n"
                                                                        : "";
      if (!append(fmt::format("{}{}{} {}\n", start, line.number, line.matches ? ":" : "-", shown_text(line)))) {
        m_context_cut = true;
        break;
      }
      last = line.number;
      json entry = {{"number", line.number}, {"text", line.text}, {"matches", line.matches}};
      if (line.matches) {
        entry["column"] = line.column;
        ++m_shown;
      }
      fields["lines"].push_back(std::move(entry));
    }
    if (last != 0) {
      m_result.structured["files"].push_back(std::move(fields));
    }
  }

  const FileGrepRequest& m_request;
  const ShownPaths& m_paths;
  std::size_t m_max_bytes;
  ToolResult m_result;
  std::uint64_t m_shown = 0;
  bool m_full = false;
  bool m_context_cut = false;
};

/// "[12 matching lines in 3 of 40 files]", or that there are none.
std::string summary(const FileGrepResult& found, bool is_by_line) {
  const std::string binary =
      found.binary_skipped > 0 ? fmt::format(", {} binary passed over", found.binary_skipped) : "";
  if (found.totals.total == 0) {
    return fmt::format("No matches in {}{}", counted(found.files_searched, "file"), binary);
  }
  return fmt::format("[{}{} of {}{}]", is_by_line ? counted(found.totals.total, "matching line") + " in " : "",
                     found.files_with_matches, counted(found.files_searched, "file"), binary);
}

/// `has_limit`: the client has set the number of results.
ToolResult report(const FileGrepResult& found, const FileGrepRequest& request, const ShownPaths& paths,
                  bool has_limit) {
  const bool is_raised = request.max > k_default_results;
  Report report(request, paths, is_raised ? SIZE_MAX : k_default_reply_bytes - k_reply_reserve);
  for (const FoundInFile& file : found.files) {
    report.add(file);
  }
  const bool is_by_line = request.output == GrepOutput::content;
  const bool lacks_matches = report.is_full() && report.shown() < found.shown;
  ToolResult result = report.take();
  result.structured["path"] = found.path;
  result.text += summary(found, is_by_line);
  add_totals(found.totals,
             {request.offset, lacks_matches ? report.shown() : found.shown,
              lacks_matches || (found.totals.more && !has_limit)},
             is_by_line ? "matches" : "files", paths, result);
  if (is_by_line && report.is_context_cut() && !lacks_matches) {
    result.text += "\n[context was shortened to fit]";
  }
  result.text = with_notes(std::move(result.text), found.notes);
  result.structured["filesWithMatches"] = found.files_with_matches;
  result.structured["filesSearched"] = found.files_searched;
  result.structured["binarySkipped"] = found.binary_skipped;
  return result;
}

ToolResult grep(const ToolRequest& call) {
  read_rationale(call.arguments, call.settings);
  FileGrepRequest request = read_request(call);
  const SearchStart start = search_start(call, call.arguments.text("path"), "include", request.include);
  request.path = start.path;
  for (std::string& glob : request.exclude) {
    glob.erase(0, glob.starts_with(start.path + "/") ? start.path.size() : 0);
  }
  if (call.arguments.error()) {
    return mcp::error_result(*call.arguments.error());
  }
  const Heartbeat heartbeat(call.context, "searching");
  const auto found = call.sandbox.files().grep(request, longest_wait(call), call.limit(longest_wait(call)));
  if (!found) {
    return mcp::error_result(found.error());
  }
  const bool has_limit = call.arguments.has("maxResults");
  const ShownPaths paths(start.given, call.sandbox.files().base(), found->path);
  return report(*found, request, paths, has_limit);
}

}  // namespace file_grep

const ToolCode k_file_grep{file_grep::input_schema, file_grep::output_schema, file_grep::grep};

}  // namespace dockbridge::tools
