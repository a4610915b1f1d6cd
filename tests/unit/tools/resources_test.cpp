#include "tools/resources.hpp"
#include "support/field.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <tuple>

#include "mcp/bulletin.hpp"
#include "unit/sandbox/world.hpp"
#include "unit/tools/limited_client.hpp"

using namespace dockbridge;
using mcp::json;

namespace {

using dockbridge::test::field;
using test::Limited;

const json k_file_template = {{"type", "ref/resource"}, {"uri", "dockbridge://file/{path}"}};
const json k_stdout_template = {{"type", "ref/resource"}, {"uri", "dockbridge://process/{processId}/stdout"}};
const json k_review_prompt = {{"type", "ref/prompt"}, {"name", "review_processes"}};

}  // namespace

TEST_CASE("resources: files require file_read, processes check_process") {
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

TEST_CASE("resources: completion of a path requires file_ls") {
  test::World world;
  for (const mcp::ResourceTemplate& known : tools::SandboxResources(world.sandbox).templates()) {
    CHECK(known.complete_tool == (known.name == "file" ? "file_ls" : ""));
  }
}

TEST_CASE("resources: completion without its tool sends no request") {
  for (const auto& [tools, ref, name] : {std::tuple(std::set<std::string>{"file_read"}, k_file_template, "path"),
                                         std::tuple(std::set<std::string>{"file_ls"}, k_stdout_template, "processId"),
                                         std::tuple(std::set<std::string>{"file_ls"}, k_review_prompt, "processId")}) {
    Limited client(tools);
    CAPTURE(ref.dump());
    CHECK(field(client.complete(ref, name), "values").empty());
    CHECK(client.asked == 0);
  }
}

TEST_CASE("resources: completion with its tool sends a request") {
  for (const auto& [tools, ref, name] :
       {std::tuple(std::set<std::string>{"file_ls"}, k_file_template, "path"),
        std::tuple(std::set<std::string>{"check_process"}, k_stdout_template, "processId"),
        std::tuple(std::set<std::string>{"check_process"}, k_review_prompt, "processId")}) {
    Limited client(tools);
    CAPTURE(ref.dump());
    client.complete(ref, name);
    CHECK(client.asked > 0);
  }
}

TEST_CASE("resources: lists show only readable resources") {
  using Names = std::set<std::string>;
  Limited files(std::set<std::string>{"file_read"});
  CHECK(files.listed("resources/list", "resources", "name") == Names{"container"});
  CHECK(files.listed("resources/templates/list", "resourceTemplates", "name") == Names{"file"});
  Limited processes(std::set<std::string>{"check_process"});
  CHECK(processes.listed("resources/list", "resources", "name") == Names{"container", "processes"});
  CHECK(processes.listed("resources/templates/list", "resourceTemplates", "name") == Names{"stdout", "stderr"});
}

TEST_CASE("resources: one owner's subscriptions do not exhaust another's") {
  test::World world;
  mcp::Bulletin bulletin;
  tools::SandboxResources resources(world.sandbox);
  resources.publish_to(bulletin);
  std::vector<std::shared_ptr<void>> watches;
  for (int i = 0; i < 32; ++i) {
    watches.push_back(resources.watch(fmt::format("dockbridge://file/app/{}", i), "alice"));
    REQUIRE(watches.back());
  }
  CHECK_FALSE(resources.watch("dockbridge://file/app/more", "alice"));
  CHECK(resources.watch("dockbridge://file/app/more", "bob"));
  watches.pop_back();
  CHECK(resources.watch("dockbridge://file/app/more", "alice"));
}
