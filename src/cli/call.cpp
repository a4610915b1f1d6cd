#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/bridge.hpp"
#include "cli/commands.hpp"
#include "mcp/tool.hpp"
#include "util/text.hpp"

namespace dockbridge::cli {

namespace {

/// Escapes control characters on a terminal, because output of a file or command must not control it. A pipe gets the
/// bytes.
void print(std::FILE* to, const std::string& text, bool raw) {
  const bool escape = !raw && ::isatty(::fileno(to)) == 1;
  fmt::print(to, "{}\n", escape ? printable_text(text, text.size()) : text);
}

/// Where the text is not JSON, and why, in the words of the library.
std::string json_problem(const std::string& text) {
  try {
    [[maybe_unused]] const mcp::json parsed = mcp::json::parse(text);
  } catch (const mcp::json::parse_error& error) {
    const std::string_view problem = error.what();
    return fmt::format("Invalid JSON: {}. ", printable_line(problem.substr(problem.find("] ") + 2), 200));
  }
  return "";
}

}  // namespace

int call(const Options& options, const CallOrder& order, Log& log) {
  const std::string& name = order.tool;
  Bridge bridge(options, log);
  const auto resolve = [&](const mcp::CallContext&) -> sandbox::Sandbox& { return bridge.sandbox(); };
  tools::Settings settings = options.tools;
  settings.rationale_required = false;  // a person at a terminal needs no rationale
  settings.selection = {};
  const auto tools = tools::all_tools(resolve, settings);
  const auto tool = std::find_if(tools.begin(), tools.end(), [&](const mcp::Tool& t) { return t.name == name; });
  if (tool == tools.end()) {
    std::string names;
    for (const mcp::Tool& known : tools) {
      names += (names.empty() ? "" : ", ") + known.name;
    }
    fmt::print(stderr, "dockbridge: Tool not found: {}. Tools: {}\n", name, names);
    return 2;
  }
  auto parsed = mcp::parse_json(order.arguments);
  const auto* arguments = std::get_if<mcp::json>(&parsed);
  if (arguments == nullptr || !arguments->is_object()) {
    fmt::print(stderr, "dockbridge: {}The arguments must be a JSON object, such as '{{\"command\": \"uname -a\"}}'\n",
               json_problem(order.arguments));
    return 2;
  }
  const mcp::Interruption never;
  // A person can interrupt a long wait. Progress goes to stderr, the output at the end to stdout.
  mcp::CallContext context{"call", "local", never};
  context.progress_detail = mcp::ProgressDetail::heartbeat;
  context.report_progress = [&](const std::string& message) { print(stderr, "dockbridge: " + message, order.raw); };
  const mcp::ToolResult result = tool->call(*arguments, context);
  print(result.is_error ? stderr : stdout, result.text, order.raw);
  return result.is_error ? 1 : 0;
}

}  // namespace dockbridge::cli
