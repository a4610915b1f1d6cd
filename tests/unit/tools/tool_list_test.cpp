#include <doctest/doctest.h>

#include <set>
#include <string>

#include "mcp/server.hpp"
#include "tools/toolbox.hpp"

using namespace dockbridge;
using mcp::json;
using mcp::Representation;
using mcp::Revision;

namespace {

mcp::Server server_with(const tools::Settings& settings) {
  const auto unused = [](const mcp::CallContext&) -> sandbox::Sandbox& { throw std::logic_error("not called"); };
  return mcp::Server({"dockbridge", "dockbridge", "1", ""}, {tools::all_tools(unused, settings)});
}

json tools_of(const mcp::Server& server, Representation representation = Representation::text) {
  return (*server.tools_list_result(Revision::v2025_11_25, representation))["tools"];
}

}  // namespace

TEST_CASE("tool list: the default list has at most 12,000 bytes") {
  const mcp::Server server = server_with({});
  const std::string list = mcp::dump(server.tools_list_text(Revision::v2025_11_25, Representation::text));
  MESSAGE("tools/list has ", list.size(), " bytes");
  CHECK(list.size() <= 12'000);
  CHECK(tools_of(server).size() == 11);
}

TEST_CASE("tool list: output schemas are listed only on request") {
  const mcp::Server server = server_with({});
  for (const json& tool : tools_of(server)) {
    CHECK_FALSE(tool.contains("outputSchema"));
  }
  for (const json& tool : tools_of(server, Representation::structured)) {
    CHECK(tool.contains("outputSchema"));
  }
}

TEST_CASE("tool list: Claude Code is asked to load the main tools without a search") {
  std::set<std::string> loaded;
  for (const json& tool : tools_of(server_with({}))) {
    if (tool.contains("_meta") && tool["_meta"].value("anthropic/alwaysLoad", false)) {
      loaded.insert(tool["name"].get<std::string>());
    }
  }
  CHECK(loaded == std::set<std::string>{"execute_command", "check_process", "file_read", "file_edit", "file_grep"});
}

TEST_CASE("tool list: a selection hides tools, and no description names a hidden one") {
  for (const char* list : {"minimal", "execute_command", "send_input", "file_*", "file_write"}) {
    CAPTURE(list);
    tools::Settings settings;
    settings.selection = *tools::ToolSelection::parse(list);
    const json shown = tools_of(server_with(settings));
    CHECK_FALSE(shown.empty());
    for (const json& tool : shown) {
      CHECK(settings.selection.contains(tool["name"].get<std::string>()));
      CHECK_FALSE(tool["description"].get<std::string>().empty());
      const std::string text = tool.dump();
      for (const std::string_view name : tools::k_tool_names) {
        CAPTURE(name);
        CHECK((settings.selection.contains(name) || text.find(name) == std::string::npos));
      }
    }
  }
}

TEST_CASE("tool list: the rationale is required by default and optional on request") {
  tools::Settings settings;
  for (const json& tool : tools_of(server_with(settings))) {
    const json& required = tool["inputSchema"]["required"];
    CHECK(std::find(required.begin(), required.end(), "rationale") != required.end());
  }
  settings.rationale_required = false;
  for (const json& tool : tools_of(server_with(settings))) {
    const json required = tool["inputSchema"].value("required", json::array());
    CHECK(std::find(required.begin(), required.end(), "rationale") == required.end());
    CHECK(tool["inputSchema"]["properties"].contains("rationale"));
  }
}
