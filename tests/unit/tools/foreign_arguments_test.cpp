#include <doctest/doctest.h>

#include "support/field.hpp"
#include "tools/tool_table.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

// Arguments in the form of other clients' tools, as they reach the container.

namespace {

mcp::ToolResult call(const tools::ToolCode& tool, World& world, json arguments,
                     std::span<const tools::ArgumentAlias> aliases = {}) {
  arguments["rationale"] = "a test";
  tools::Arguments read(arguments, aliases);
  const mcp::Interruption interruption;
  const mcp::CallContext context{"r1", "local", interruption, {}};
  const tools::Settings settings;
  return tool.call({world.sandbox, settings, read, context, settings.selection});
}

}  // namespace

TEST_CASE("execute_command: a command may be an array of a shell, -c and a script") {
  for (const json& command : {json("make all"), json{"bash", "-lc", "make all"}, json{"/bin/sh", "-c", "make all"}}) {
    CAPTURE(command);
    World world;
    (void)call(tools::k_execute_command, world, {{"command", command}, {"background", true}});
    REQUIRE(world.container.count("start") == 1);
    CHECK(world.container.requests("start").at(0).body.starts_with("make all"));
  }
  for (const json& command : {json{"make", "all"}, json{"bash", "-x", "make"}, json{"bash", "-c", "make", "x"},
                              json{"python3", "-c", "make"}, json::array()}) {
    CAPTURE(command);
    World world;
    const auto result = call(tools::k_execute_command, world, {{"command", command}});
    CHECK(field(result.structured, "error", "message") ==
          R"(Invalid argument command: must be a string, or an array such as ["bash", "-lc", "make"])");
    CHECK(world.container.count("start") == 0);
  }
}

TEST_CASE("control_process: a missing action is answered with the accepted ones") {
  World world;
  const auto result = call(tools::k_control_process, world, {{"processId", "p1"}});
  CHECK(field(result.structured, "error", "nextStep") ==
        "Call again with action: pause, resume, interrupt, terminate, kill, signal, resize");
}

TEST_CASE("file_read: takes the first and the last line, counted from 1") {
  const auto asked = [](json arguments) {
    World world([](FakeAgent& agent, const wire::Frame& request) { agent.refuse(request, "no_such_file"); });
    arguments["filePath"] = "/app/a";
    (void)call(tools::k_file_read, world, arguments);
    REQUIRE(world.container.count("file.read") == 1);
    const json head = world.container.requests("file.read").at(0).head;
    return std::pair(head.at("offset").get<int>(), head.at("limit").get<int>());
  };
  CHECK(asked({{"start_line", 11}, {"end_line", 20}}) == std::pair(10, 10));
  CHECK(asked({{"end_line", 5}}) == std::pair(0, 5));
  CHECK(asked({{"start_line", 11}}).first == 10);
  CHECK(asked({{"start_line", 11}, {"offset", 3}, {"limit", 7}}) == std::pair(3, 7));
}
