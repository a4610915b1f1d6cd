#include "tools/argument_names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "tools/toolbox.hpp"

using namespace dockbridge;

namespace {

struct Known {
  std::string_view tool;
  std::string_view alias;
  std::string_view name;
};

/// Arguments of the tools of Claude Code, Codex, Gemini CLI and docker-mcp-server that have another name here.
const std::vector<Known> k_known = {
    {"execute_command", "cmd", "command"},
    {"execute_command", "workdir", "cwd"},
    {"execute_command", "inactivityTimeout", "maxWaitTime"},
    {"execute_command", "yield_time_ms", "timeoutMs"},
    {"execute_command", "run_in_background", "background"},
    {"check_process", "bash_id", "processId"},
    {"check_process", "session_id", "processId"},
    {"check_process", "filter", "grep"},
    {"control_process", "shell_id", "processId"},
    {"send_input", "session_id", "processId"},
    {"send_input", "chars", "input"},
    {"file_read", "file_path", "filePath"},
    {"file_write", "file_path", "filePath"},
    {"file_write", "contents", "content"},
    {"file_edit", "file_path", "filePath"},
    {"file_edit", "old_string", "oldString"},
    {"file_edit", "new_string", "newString"},
    {"file_edit", "replace_all", "replaceAll"},
    {"file_grep", "glob", "include"},
    {"file_grep", "output_mode", "output"},
    {"file_grep", "-i", "caseInsensitive"},
    {"file_grep", "-A", "context"},
    {"file_grep", "-B", "context"},
    {"file_grep", "-C", "context"},
    {"file_grep", "head_limit", "maxResults"},
    {"file_grep", "multiline", "multiLine"},
    {"file_ls", "dir_path", "path"},
};

}  // namespace

TEST_CASE("argument names: those of other clients' tools are accepted") {
  for (const Known& known : k_known) {
    CAPTURE(known.tool);
    CAPTURE(known.alias);
    const auto aliases = tools::argument_aliases(known.tool);
    const auto found =
        std::find_if(aliases.begin(), aliases.end(), [&](const auto& each) { return each.alias == known.alias; });
    REQUIRE(found != aliases.end());
    CHECK(found->name == known.name);
  }
  for (const std::string_view ignored : {"description", "-n", "explanation"}) {
    CHECK(tools::is_ignored_argument(ignored));
  }
}

TEST_CASE("argument names: no alias hides a listed argument of its tool") {
  const auto unused = [](const mcp::CallContext&) -> sandbox::Sandbox& { throw std::logic_error("not called"); };
  for (const mcp::Tool& tool : tools::all_tools(unused, {})) {
    CAPTURE(tool.name);
    for (const auto& [alias, name] : tools::argument_aliases(tool.name)) {
      CAPTURE(alias);
      CHECK_FALSE((tool.input_schema.at("properties").contains(std::string(alias)) &&
                   tool.input_schema.at("properties").contains(std::string(name))));
    }
  }
}
