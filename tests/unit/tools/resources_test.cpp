#include "tools/resources.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <set>
#include <tuple>

#include "mcp/bulletin.hpp"
#include "mcp/call.hpp"
#include "mcp/hub.hpp"
#include "tools/prompts.hpp"
#include "unit/mcp/doubles.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using mcp::json;

namespace {

/// A client of the real resources and prompts that may use only some tools.
class Limited {
 public:
  explicit Limited(const std::set<std::string>& tools)
      : m_conversation(mcp::Conversation::begin(
            m_hub, {"alice", tools},
            std::make_shared<mcp::DirectSink>([this](const json& message) { return m_inbox.put(message); }))) {}

  json ask(const std::string& method, const json& params) {
    for (const auto& call : m_conversation->receive(mcp::request_message(++m_id, method, params).dump())) {
      call->make();
    }
    return m_inbox.next()["result"];
  }
  json complete(const json& ref, const std::string& name) {
    return ask("completion/complete", {{"ref", ref}, {"argument", {{"name", name}, {"value", ""}}}})["completion"];
  }
  std::set<std::string> listed(const std::string& method, const std::string& list, const std::string& key) {
    std::set<std::string> found;
    const json result = ask(method, json::object());
    for (const json& entry : result[list]) {
      found.insert(entry[key].get<std::string>());
    }
    return found;
  }

  std::atomic<int> asked{0};  // requests to the container

 private:
  test::World m_world{[this](test::FakeAgent& agent, const wire::Frame& request) {
    asked += request.head.at("op") == "ping" ? 0 : 1;
    test::behave_well(agent, request);
  }};
  tools::SandboxResources m_resources{m_world.sandbox};
  Log m_log{-1, LogLevel::off, LogFormat::text};
  const mcp::Server m_server{{"test", "Test", "1", ""}, {{}, tools::all_prompts(m_world.sandbox), &m_resources}};
  mcp::Hub m_hub{m_server, m_log};
  mcp::test::Inbox m_inbox;
  int m_id = 0;
  std::shared_ptr<mcp::Conversation> m_conversation;
};

const json k_file_template = {{"type", "ref/resource"}, {"uri", "dockbridge://file/{path}"}};
const json k_stdout_template = {{"type", "ref/resource"}, {"uri", "dockbridge://process/{processId}/stdout"}};
const json k_review_prompt = {{"type", "ref/prompt"}, {"name", "review_processes"}};

}  // namespace

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

TEST_CASE("resources: completion of a path requires file_ls") {
  test::World world;
  for (const mcp::ResourceTemplate& known : tools::SandboxResources(world.sandbox).templates()) {
    CHECK(known.complete_tool == (known.name == "file" ? "file_ls" : ""));
  }
}

TEST_CASE("resources: without the matching tool a completion asks the container nothing") {
  for (const auto& [tools, ref, name] : {std::tuple(std::set<std::string>{"file_read"}, k_file_template, "path"),
                                         std::tuple(std::set<std::string>{"file_ls"}, k_stdout_template, "processId"),
                                         std::tuple(std::set<std::string>{"file_ls"}, k_review_prompt, "processId")}) {
    Limited client(tools);
    CAPTURE(ref.dump());
    CHECK(client.complete(ref, name)["values"].empty());
    CHECK(client.asked == 0);
  }
}

TEST_CASE("resources: with the matching tool a completion asks the container") {
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
  Limited files({"file_read"});
  CHECK(files.listed("resources/list", "resources", "name") == Names{"container"});
  CHECK(files.listed("resources/templates/list", "resourceTemplates", "name") == Names{"file"});
  Limited processes({"check_process"});
  CHECK(processes.listed("resources/list", "resources", "name") == Names{"container", "processes"});
  CHECK(processes.listed("resources/templates/list", "resourceTemplates", "name") == Names{"stdout", "stderr"});
}

TEST_CASE("resources: one owner's subscriptions do not use up another's") {
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
