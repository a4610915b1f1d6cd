#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/bridge.hpp"
#include "cli/commands.hpp"
#include "mcp/tool.hpp"

namespace dockbridge::cli {

int call(const Options& options, const std::string& name, const std::string& text, Log& log) {
  Bridge bridge(options, log);
  const auto resolve = [&](const mcp::CallContext&) -> sandbox::Sandbox& { return bridge.sandbox(); };
  const auto tools = tools::all_tools(resolve, options.tools);
  const auto tool = std::find_if(tools.begin(), tools.end(), [&](const mcp::Tool& t) { return t.name == name; });
  if (tool == tools.end()) {
    std::string names;
    for (const mcp::Tool& known : tools) {
      names += (names.empty() ? "" : ", ") + known.name;
    }
    fmt::print(stderr, "dockbridge: there is no tool '{}'. Tools: {}\n", name, names);
    return 2;
  }
  auto parsed = mcp::parse_json(text);
  const auto* arguments = std::get_if<mcp::json>(&parsed);
  if (arguments == nullptr || !arguments->is_object()) {
    fmt::print(stderr,
               "dockbridge: the arguments have to be a JSON object, such as "
               "'{{\"command\": \"uname -a\", \"rationale\": \"try it\"}}'\n");
    return 2;
  }
  const mcp::Interruption never;
  // A terminal waits as long as it takes: that it does goes to stderr, the output itself at the end to stdout.
  const mcp::CallContext context{"call", "local", never,
                                 [](const std::string& message) { fmt::print(stderr, "dockbridge: {}\n", message); }};
  const mcp::ToolResult result = tool->call(*arguments, context);
  fmt::print(result.is_error ? stderr : stdout, "{}\n", result.text);
  return result.is_error ? 1 : 0;
}

}  // namespace dockbridge::cli
