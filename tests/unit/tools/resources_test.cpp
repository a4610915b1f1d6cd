#include "tools/resources.hpp"

#include <doctest/doctest.h>

#include "unit/sandbox/world.hpp"

using namespace dockbridge;

TEST_CASE("files are read as resources by those who may use file_read, processes by those who may use check_process") {
  test::World world;
  const tools::SandboxResources resources(world.sandbox);
  CHECK(resources.tool_for("dockbridge://file/%2Fetc%2Fpasswd") == "file_read");
  CHECK(resources.tool_for("dockbridge://processes") == "check_process");
  CHECK(resources.tool_for("dockbridge://process/proc_1_abc/stdout") == "check_process");
  CHECK(resources.tool_for("dockbridge://container").empty());
  for (const mcp::ResourceTemplate& known : resources.templates()) {
    CHECK_FALSE(resources.tool_for(known.uri_template).empty());
  }
}
