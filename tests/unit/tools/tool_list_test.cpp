#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "mcp/server.hpp"
#include "support/field.hpp"
#include "tools/toolbox.hpp"
#include "unit/tools/limited_client.hpp"

using namespace dockbridge;
using dockbridge::test::field;
using dockbridge::test::Limited;
using mcp::json;
using mcp::Representation;
using mcp::Revision;

namespace {

mcp::Server server_with(const tools::Settings& settings) {
  const auto unused = [](const mcp::CallContext&) -> sandbox::Sandbox& { throw std::logic_error("not called"); };
  return mcp::Server({"dockbridge", "dockbridge", "1", ""}, {tools::all_tools(unused, settings)});
}

json tools_of(const mcp::Server& server, Representation representation = Representation::text) {
  return field(json::parse(mcp::dump(*server.lists.tools(Revision::v2025_11_25, representation))), "tools");
}

/// Everything that a client reads before it calls a tool names only the selected ones.
void check_texts(const tools::ToolSelection& selection, Limited&& client) {
  const json greeting = {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}};
  const json stateless = {{"_meta", {{mcp::k_meta_version, "2026-07-28"}, {mcp::k_meta_capabilities, json::object()}}}};
  std::vector<json> read = {
      client.ask("initialize", greeting),           client.ask("server/discover", stateless),
      client.ask("tools/list", json::object()),     client.ask("prompts/list", json::object()),
      client.ask("resources/list", json::object()), client.ask("resources/templates/list", json::object()),
      client.ask("skills/list", stateless)};
  for (const json& tool : field(read.at(2), "tools")) {
    CHECK(selection.contains(field(tool, "name").get<std::string>()));
    CHECK_FALSE(field(tool, "description").get<std::string>().empty());
  }
  CHECK_FALSE(field(read.at(2), "tools").empty());
  for (const char* prompt : {"diagnose_build", "set_up_project", "review_processes"}) {
    read.push_back(client.send("prompts/get", {{"name", prompt}}));
  }
  for (const char* uri :
       {"dockbridge://process/proc_1_abc/stdout", "dockbridge://file/etc/nothing", "dockbridge://other"}) {
    read.push_back(client.send("resources/read", {{"uri", uri}}));
  }
  for (const json& text : read) {
    CAPTURE(text.dump().substr(0, 300));
    for (const std::string_view name : tools::k_tool_names) {
      CAPTURE(name);
      CHECK((selection.contains(name) || text.dump().find(name) == std::string::npos));
    }
  }
}

}  // namespace

TEST_CASE("tool list: the default list has at most 13,150 bytes") {
  const mcp::Server server = server_with({});
  for (const Revision revision : {Revision::v2025_11_25, Revision::v2026_07_28}) {
    const std::string list = mcp::dump(server.lists.tools_text(revision, Representation::text));
    MESSAGE("tools/list has ", list.size(), " bytes");
    CHECK(list.size() <= 13'150);
  }
  CHECK(tools_of(server).size() == 12);
}

TEST_CASE("tool list: python has at most 1,000 bytes") {
  for (const json& tool : tools_of(server_with({}))) {
    if (field(tool, "name") == "python") {
      MESSAGE("python has ", tool.dump().size(), " bytes");
      CHECK(tool.dump().size() <= 1000);
      return;
    }
  }
  FAIL("python is not listed");
}

TEST_CASE("tool list: tools of older servers are listed only on request") {
  const auto more_with = [](const std::set<tools::Compat>& servers) {
    tools::Settings settings;
    settings.compat = servers;
    std::map<std::string, json> more;
    for (const json& tool : tools_of(server_with(settings))) {
      more[field(tool, "name")] = field(tool, "inputSchema");
    }
    for (const json& tool : tools_of(server_with({}))) {
      CHECK(more.erase(field(tool, "name").get<std::string>()) == 1);
    }
    return more;
  };
  const auto arguments = [](const json& schema) {
    std::set<std::string> names;
    for (const auto& entry : field(schema, "properties").items()) {
      names.insert(entry.key());
    }
    return names;
  };
  using Names = std::set<std::string>;
  CHECK(more_with({}).empty());
  const auto repl = more_with({tools::Compat::repl});
  CHECK(repl.size() == 3);
  CHECK(arguments(repl.at("shell")) == Names{"command", "shell", "working_dir"});
  CHECK(arguments(repl.at("shell_status")) == Names{"task_id"});
  CHECK(arguments(repl.at("python_session")) == Names{"code", "session_id"});
  const auto coderunner = more_with({tools::Compat::coderunner});
  CHECK(coderunner.size() == 1);
  CHECK(arguments(coderunner.at("execute_python_code")) == Names{"command"});
  CHECK(more_with({tools::Compat::repl, tools::Compat::coderunner}).size() == 4);
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
    if (tool.contains("_meta") && field(tool, "_meta").value("anthropic/alwaysLoad", false)) {
      loaded.insert(field(tool, "name").get<std::string>());
    }
  }
  CHECK(loaded == std::set<std::string>{"execute_command", "check_process", "file_read", "file_edit", "file_grep"});
}

TEST_CASE("tool list: Claude Code keeps long results in the conversation if an argument asks for them") {
  for (const json& tool : tools_of(server_with({}))) {
    CAPTURE(tool);
    const json properties = field(tool, "inputSchema", "properties");
    const bool can_be_raised =
        properties.contains("maxOutput") || properties.contains("limit") || properties.contains("maxResults");
    const json meta = tool.value("_meta", json::object());
    CHECK(meta.contains("anthropic/maxResultSizeChars") == can_be_raised);
    CHECK(meta.value("anthropic/maxResultSizeChars", 400'000) >= 400'000);
  }
}

TEST_CASE("tool list: no text for clients names a hidden tool") {
  for (const char* list : {"minimal", "execute_command", "check_process", "send_input", "file_*", "file_write",
                           "execute_command,check_process"}) {
    CAPTURE(list);
    const tools::ToolSelection selection = *tools::ToolSelection::parse(list);
    tools::Settings settings;
    settings.selection = selection;
    check_texts(selection, Limited(std::nullopt, settings));
    std::set<std::string> of_token;
    for (const std::string_view tool : tools::k_tool_names) {
      if (selection.contains(tool)) {
        of_token.emplace(tool);
      }
    }
    check_texts(selection, Limited(of_token));
  }
}

TEST_CASE("tool list: a prompt is hidden from clients that may not use its tools") {
  Limited all(std::nullopt);
  CHECK(all.listed("prompts/list", "prompts", "name").size() == 3);
  Limited processes(std::set<std::string>{"check_process"});
  CHECK(processes.listed("prompts/list", "prompts", "name") == std::set<std::string>{"review_processes"});
  CHECK(processes.send("prompts/get", {{"name", "review_processes"}}).contains("result"));
  CHECK(field(processes.send("prompts/get", {{"name", "diagnose_build"}}), "error", "message") ==
        "Prompt not found: diagnose_build");
}

TEST_CASE("tool list: a resource is hidden if the server does not have its tool") {
  tools::Settings settings;
  settings.selection = *tools::ToolSelection::parse("execute_command");
  Limited client(std::nullopt, settings);
  CHECK(client.listed("resources/list", "resources", "name") == std::set<std::string>{"container"});
  CHECK(client.listed("resources/templates/list", "resourceTemplates", "name").empty());
  CHECK(field(client.send("resources/read", {{"uri", "dockbridge://processes"}}), "error", "message") ==
        "Resource not found: dockbridge://processes. Use a URI from resources/list or of a resource template");
}

TEST_CASE("tool list: instructions have no sentence about a tool that is hidden") {
  const auto instructions = [](const char* list) {
    return tools::ToolSelection::parse(list)->keep_sentences(tools::k_instructions);
  };
  CHECK(instructions("file_*").find("background") == std::string::npos);
  CHECK(instructions("minimal").find("takes back") == std::string::npos);
  CHECK(instructions("execute_command") ==
        "You work in a persistent Docker container. Files and processes stay between calls. execute_command runs a "
        "shell command; if it falls silent, it continues in the background under a process id. Start servers by "
        "execute_command with background: true.");
}

TEST_CASE("tool list: the rationale is required by default and optional on request") {
  tools::Settings settings;
  for (const json& tool : tools_of(server_with(settings))) {
    const json& required = field(tool, "inputSchema", "required");
    CHECK(std::find(required.begin(), required.end(), "rationale") != required.end());
  }
  settings.rationale_required = false;
  for (const json& tool : tools_of(server_with(settings))) {
    const json required = field(tool, "inputSchema").value("required", json::array());
    CHECK(std::find(required.begin(), required.end(), "rationale") == required.end());
    CHECK(field(tool, "inputSchema", "properties").contains("rationale"));
  }
}

TEST_CASE("tool list: errors suggest only arguments that a schema has") {
  Limited client(std::nullopt);
  const json list = client.ask("tools/list", json::object());
  for (const json& tool : field(list, "tools")) {
    const std::string text =
        client.send("tools/call", {{"name", field(tool, "name")}, {"arguments", {{"zzqqxxzz", 1}}}}).dump();
    CAPTURE(text);
    const std::string_view mark = "Accepted: ";
    const std::size_t at = text.find(mark);
    REQUIRE(at != std::string::npos);
    std::size_t begin = at + mark.size();
    for (bool more = true; more;) {
      const std::size_t end = text.find_first_of(",\"", begin);
      const std::string name = text.substr(begin, end - begin);
      CAPTURE(name);
      CHECK(field(tool, "inputSchema", "properties").contains(name));
      more = text[end] == ',';
      begin = end + 2;
    }
  }
}
