#include <csignal>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/served.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

const json k_stateless_meta = {
    {"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
    {"io.modelcontextprotocol/clientCapabilities",
     {{"extensions", {{"io.modelcontextprotocol/tasks", json::object()}}}}},
};
/// Command that ends when the test orders it to.
constexpr const char* k_gated = "echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo finished";

/// Starts a task of 2025-11-25 and returns its id.
std::string start_task(Server& server, const std::string& command) {
  const json answer = server.request("tools/call", {{"name", "execute_command"},
                                                    {"arguments", {{"command", command}, {"rationale", "a test"}}},
                                                    {"task", {{"ttl", 600'000}}}});
  REQUIRE(answer.contains("result"));
  return field(answer, "result", "task", "taskId");
}

void kill_server(Server& server) {
  server.signal(SIGKILL);
  (void)server.wait_for_exit();
}

json get_task(Server& server, const std::string& id, bool stateless) {
  json params = {{"taskId", id}};
  if (stateless) {
    params["_meta"] = k_stateless_meta;
  }
  return server.request("tasks/get", params);
}

/// Waits for the end of the task and returns its last description.
json ended_task(Server& server, const std::string& id, bool stateless) {
  json task;
  eventually(
      "the task has ended",
      [&] {
        const json answer = get_task(server, id, stateless);
        CAPTURE(answer.dump());
        REQUIRE(answer.contains("result"));
        task = field(answer, "result");
        return field(task, "status") != "working";
      },
      seconds(30));
  return task;
}

}  // namespace

TEST_CASE("tasks: a task of 2025-11-25 outlives kill -9 of the server") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::string id;
  {
    Server first({"-c", container.name()});
    first.initialize();
    id = start_task(first, k_gated);
    eventually("the command runs", [&] { return !container.pids_of("tmp/go").empty(); });
    kill_server(first);
  }
  Server second({"-c", container.name()});
  second.initialize();
  CHECK(field(get_task(second, id, false), "result", "status") == "working");
  (void)container.sh("touch /tmp/go");
  CHECK(field(ended_task(second, id, false), "status") == "completed");
  const json result = field(second.request("tasks/result", {{"taskId", id}}), "result");
  CHECK(text_of(result).find("begun\nfinished") != std::string::npos);
  CHECK(text_of(result).find("Exit code: 0") != std::string::npos);
  CHECK(field(result, "_meta", "io.modelcontextprotocol/related-task", "taskId") == id);
}

TEST_CASE("tasks: a task of 2026-07-28 outlives kill -9 of the server") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::string id;
  {
    Server first({"-c", container.name()});
    const json answer = first.request("tools/call", {{"name", "execute_command"},
                                                     {"arguments", {{"command", k_gated}, {"rationale", "a test"}}},
                                                     {"_meta", k_stateless_meta}});
    REQUIRE(field(answer, "result", "resultType") == "task");
    id = field(answer, "result", "taskId");
    kill_server(first);
  }
  Server second({"-c", container.name()});
  CHECK(field(get_task(second, id, true), "result", "status") == "working");
  (void)container.sh("touch /tmp/go");
  const json task = ended_task(second, id, true);
  CHECK(field(task, "status") == "completed");
  CHECK(text_of(field(task, "result")).find("begun\nfinished") != std::string::npos);
  CHECK(text_of(field(task, "result")).find("Exit code: 0") != std::string::npos);
}

TEST_CASE("tasks: tasks/cancel ends the command of a task from before the restart") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::string id;
  {
    Server first({"-c", container.name()});
    first.initialize();
    id = start_task(first, "sleep 7670");
    eventually("the command runs", [&] { return !container.pids_of("sleep 7670").empty(); });
    kill_server(first);
  }
  Server second({"-c", container.name()});
  second.initialize();
  CHECK(field(second.request("tasks/cancel", {{"taskId", id}}), "result", "status") == "cancelled");
  eventually("the command is gone", [&] { return container.pids_of("sleep 7670").empty(); });
  CHECK(field(ended_task(second, id, false), "status") == "cancelled");
}

TEST_CASE("tasks: a command that waits for input completes its task after a restart") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::string id;
  {
    Server first({"-c", container.name()});
    first.initialize();
    id = start_task(first, "sleep 1; read -r -p 'name? ' name");
    eventually("the command runs", [&] { return !container.pids_of("sleep 1").empty(); });
    kill_server(first);
  }
  Server second({"-c", container.name()});
  second.initialize();
  CHECK(field(ended_task(second, id, false), "status") == "completed");
  const json result = field(second.request("tasks/result", {{"taskId", id}}), "result");
  CHECK(text_of(result).find("input") != std::string::npos);
}

TEST_CASE("tasks: another owner's earlier task is reported like an unknown one") {
  Served served;
  std::string id;
  {
    Server first({"-c", served.container.name()});
    first.initialize();
    id = start_task(first, "sleep 7671");
    eventually("the command runs", [&] { return !served.container.pids_of("sleep 7671").empty(); });
    kill_server(first);
  }
  for (const char* method : {"tasks/get", "tasks/cancel"}) {
    const std::string unknown = "task_" + std::string(32, '0');
    const auto ask = [&](const std::string& task) {
      return field(served.ask(k_alice, method, task, {{"taskId", task}}, k_stateless_meta), "error");
    };
    CHECK(field(ask(id), "code") == field(ask(unknown), "code"));
    CHECK(field(ask(id), "message") == "Task not found: " + id);
    CHECK(field(ask(unknown), "message") == "Task not found: " + unknown);
  }
  CHECK_FALSE(served.container.pids_of("sleep 7671").empty());
}
