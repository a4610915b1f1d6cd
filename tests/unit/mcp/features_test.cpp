// Features of a conversation in addition to calls: tasks, resources, prompts, completion, logging, subscriptions,
// repetition.

#include <doctest/doctest.h>

#include <atomic>
#include <set>

#include "mcp/call.hpp"
#include "mcp/conversation.hpp"
#include "support/field.hpp"
#include "support/program.hpp"
#include "unit/mcp/doubles.hpp"
#include "util/sha256.hpp"
#include "util/worker_pool.hpp"

using namespace dockbridge;
using namespace dockbridge::mcp;
using namespace dockbridge::mcp::test;
using dockbridge::test::field;

namespace {

json meta(json capabilities = json::object()) {
  return {{k_meta_version, "2026-07-28"}, {k_meta_capabilities, std::move(capabilities)}};
}

const json k_follows_tasks = {{"extensions", {{k_tasks_extension, json::object()}}}};

class OneResource : public ResourceProvider {
 public:
  [[nodiscard]] std::vector<Resource> resources() const override {
    return {{"test://one", "one", "One", "The one", "text/plain"}};
  }
  [[nodiscard]] std::vector<ResourceTemplate> templates() const override {
    return {{"test://{n}", "n", "N", "Any", "text/plain", {{"n", [](const std::string& typed, const CallContext&) {
                                                              return std::vector{typed + "1", typed + "2"};
                                                            }}}}};
  }
  [[nodiscard]] std::string tool_for(const std::string&) const override { return "mark"; }
  Result<json> read(const std::string& uri, const CallContext&) override {
    if (uri != "test://one") {
      return fail(ErrorCode::resource_not_found, "no such resource");
    }
    return json::array({{{"uri", uri}, {"text", "1"}}});
  }
  std::shared_ptr<void> watch(const std::string& uri, const std::string&) override {
    return uri == "test://one" ? std::shared_ptr<void>(this, [](void*) {}) : nullptr;
  }
};

const std::string k_lost_handle(32, 'a');
const std::string k_lost_task = "task_" + k_lost_handle;

/// Work of alice's call that is found under `k_lost_handle`.
class OneLostTask : public LostTasks {
 public:
  Result<std::optional<LostTask>> find(const std::string& handle, milliseconds patience,
                                       const CallContext& context) override {
    asked_patience = patience;
    if (handle != k_lost_handle || context.owner != "alice") {
      return std::nullopt;
    }
    return LostTask{status, 1000, 2000, {"what it printed", nullptr}, runs};
  }
  Result<void> cancel(const std::string& handle, const CallContext& context) override {
    CHECK(handle == k_lost_handle);
    CHECK(context.owner == "alice");
    status = TaskStatus::cancelled;
    runs = false;
    return {};
  }

  TaskStatus status = TaskStatus::working;
  bool runs = true;
  milliseconds asked_patience{-1};
};

/// Several clients of one server.
class House {
 public:
  class Client {
   public:
    Client(House& house, const std::string& owner, const std::optional<std::set<std::string>>& tools = std::nullopt)
        : m_house(house),
          m_conversation(Conversation::begin(
              house.hub, {owner, tools},
              std::make_shared<DirectSink>([this](const json& message) { return m_inbox.put(message); }))) {}
    ~Client() {
      m_conversation->detach_calls();
      CHECK(m_conversation->wait_for_calls(Deadline::after(k_patience)));
      m_house.pool.wait_until_idle(Deadline::after(k_patience));
    }
    void send(const json& message) {
      for (auto& call : m_conversation->receive(message.dump())) {
        REQUIRE(m_house.pool.submit([call] { call->make(); }));
      }
    }
    json next() { return m_inbox.next(); }
    json ask(const std::string& method, const json& params) {
      send(request_message(++m_id, method, params));
      return next();
    }
    json stateless(const std::string& method, json params = json::object(), const json& capabilities = json::object()) {
      params["_meta"] = meta(capabilities);
      return ask(method, params);
    }
    void initialize(const std::string& version = "2025-11-25") {
      ask("initialize", {{"protocolVersion", version}, {"capabilities", json::object()}});
    }

   private:
    House& m_house;
    Inbox m_inbox;
    std::shared_ptr<Conversation> m_conversation;
    int m_id = 0;
  };

 private:
  ToolResult pass(const CallContext& context) {
    gate.pass(context);
    ToolResult result{"through", nullptr};
    result.on_delivered = deliveries.expect();
    return result;
  }
  std::vector<Tool> tools() {
    return {
        tool(
            "gate", [this](const json&, const CallContext& context) { return pass(context); }, TaskSupport::optional),
        tool(
            "task",
            [this](const json& arguments, const CallContext& context) {
              if (arguments.contains("elapsed")) {
                context.become_task_if_due(Clock::now() + milliseconds(field(arguments, "elapsed").get<int>()));
              } else {
                context.become_task();
              }
              return pass(context);
            },
            TaskSupport::optional),
        tool("ask",
             [](const json&, const CallContext& context) {
               const auto answers = context.ask({{"q", {{"method", "roots/list"}, {"params", json::object()}}}});
               return ToolResult{answers ? answers->dump() : answers.error().message, nullptr};
             }),
        tool(
            "handle",
            [](const json&, const CallContext& context) {
              context.become_task();
              return ToolResult{context.handle, nullptr};
            },
            TaskSupport::optional),
        tool("mark",
             [](const json&, const CallContext& context) {
               return ToolResult{context.once ? context.once->key + " " + context.once->call : "none", nullptr};
             }),
        tool("fail",
             [this](const json& arguments, const CallContext&) {
               ++failed;
               ToolResult result = error_result({ErrorCode::host_file, "it failed"});
               result.may_be_repeated = arguments.value("mayBeRepeated", false);
               return result;
             }),
        tool("log", [](const json&, const CallContext& context) {
          if (context.log) {
            context.log(LogSeverity::debug, "fine");
            context.log(LogSeverity::error, "coarse");
          }
          return ToolResult{"logged", nullptr};
        })};
  }

 public:
  Gate gate;
  Deliveries deliveries;  // of results of the tool "gate"
  std::atomic<int> failed{0};
  OneResource resources;
  OneLostTask lost_tasks;
  Log log{-1, LogLevel::off, LogFormat::text};
  const Server server{
      {"test", "Test", "1", "", "", true},
      {tools(),
       {{"greet",
         "Greet",
         "Greets",
         {{"who", "whom", true}},
         [](const json& arguments, const CallContext&) {
           return PromptResult{json::array({field(arguments, "who")})};
         }}},
       &resources,
       &lost_tasks,
       {{"skill://test/both/SKILL.md", "both", "Says: \"both\"", {"mark", "log"}, "# Both\n"},
        {"skill://test/one/SKILL.md", "one", "Says one", {"mark"}, "# One\n"},
        {"skill://test/none/SKILL.md", "none", "Names a tool that is not there", {"no_such_tool"}, ""}}}};
  Hub hub{server, log};
  WorkerPool pool{16};
};

std::string result_text(const json& result) {
  return field(result, "content", 0, "text");
}

}  // namespace

TEST_CASE("tasks: a requested task is returned at once, its result when it is ready") {
  House house;
  House::Client client(house, "alice");
  client.initialize();
  const json task = field(client.ask("tools/call", {{"name", "gate"}, {"task", {{"ttl", 60000}}}}), "result", "task");
  CHECK(field(task, "status") == "working");
  CHECK(field(task, "ttl") == 60000);
  const json id = field(task, "taskId");
  CHECK(field(client.ask("tasks/get", {{"taskId", id}}), "result", "status") == "working");
  CHECK(field(client.ask("tasks/list", json::object()), "result", "tasks", 0, "taskId") == id);
  house.gate.open();
  client.send(request_message("result", "tasks/result", {{"taskId", id}}));
  json answer = client.next();
  if (answer.contains("method")) {
    CHECK(field(answer, "method") == "notifications/tasks/status");
    CHECK(field(answer, "params", "status") == "completed");
    answer = client.next();
  }
  CHECK(result_text(field(answer, "result")) == "through");
  CHECK(field(answer, "result", "_meta", k_meta_related_task, "taskId") == id);
}

TEST_CASE("tasks: a stateless call becomes a task only if its client supports tasks") {
  House house;
  House::Client alice(house, "alice");
  House::Client bob(house, "bob");
  const json task = field(alice.stateless("tools/call", {{"name", "task"}}, k_follows_tasks), "result");
  CHECK(field(task, "resultType") == "task");
  CHECK(field(task, "status") == "working");
  const json named = {{"taskId", field(task, "taskId")}};
  CHECK(field(bob.stateless("tasks/get", named, k_follows_tasks), "error", "code") == k_invalid_params);
  CHECK(field(bob.stateless("tasks/cancel", named, k_follows_tasks), "error", "code") == k_invalid_params);
  CHECK(field(alice.stateless("tasks/get", named), "error", "code") == k_missing_capability);
  CHECK(field(alice.stateless("tasks/list", {}, k_follows_tasks), "error", "code") == k_method_not_found);
  CHECK(field(alice.stateless("tasks/cancel", named, k_follows_tasks), "result", "resultType") == "complete");
  CHECK(field(alice.stateless("tasks/get", named, k_follows_tasks), "result", "status") == "cancelled");
  house.gate.open();
  CHECK(result_text(field(alice.stateless("tools/call", {{"name", "task"}}), "result")) == "through");
}

TEST_CASE("tasks: a call becomes a task when it has run for three seconds, not before") {
  House house;
  House::Client client(house, "alice");
  const auto call = [&](int elapsed, const json& capabilities) {
    return field(
        client.stateless("tools/call", {{"name", "task"}, {"arguments", {{"elapsed", elapsed}}}}, capabilities),
        "result", "resultType");
  };
  CHECK(call(3000, k_follows_tasks) == "task");
  house.gate.open();
  CHECK(call(1000, k_follows_tasks) == "complete");
  CHECK(call(3000, json::object()) == "complete");
}

TEST_CASE("tasks: the id of a task is derived from its call's handle") {
  House house;
  House::Client client(house, "alice");
  const json task = field(client.stateless("tools/call", {{"name", "handle"}}, k_follows_tasks), "result");
  CHECK(field(task, "resultType") == "task");
  json ended;
  dockbridge::test::eventually("the task has ended", [&] {
    ended = field(client.stateless("tasks/get", {{"taskId", field(task, "taskId")}}, k_follows_tasks), "result");
    return field(ended, "status") == "completed";
  });
  CHECK("task_" + result_text(field(ended, "result")) == field(task, "taskId"));
  CHECK(result_text(field(client.stateless("tools/call", {{"name", "handle"}}), "result")).empty());
}

TEST_CASE("tasks: work of an earlier run of the server is found by the task's id") {
  House house;
  House::Client client(house, "alice");
  const auto get = [&] {
    return field(client.stateless("tasks/get", {{"taskId", k_lost_task}}, k_follows_tasks), "result");
  };
  CHECK(field(get(), "status") == "working");
  CHECK(field(get(), "createdAt") == "1970-01-01T00:00:01.000Z");
  house.lost_tasks.status = TaskStatus::completed;
  CHECK(field(get(), "status") == "completed");
  CHECK(result_text(field(get(), "result")) == "what it printed");
  client.initialize();
  CHECK(field(client.ask("tasks/get", {{"taskId", k_lost_task}}), "result", "status") == "completed");
  CHECK(house.lost_tasks.asked_patience == milliseconds(0));
  const json result = field(client.ask("tasks/result", {{"taskId", k_lost_task}}), "result");
  CHECK(result_text(result) == "what it printed");
  CHECK(field(result, "_meta", k_meta_related_task, "taskId") == k_lost_task);
  CHECK(house.lost_tasks.asked_patience > seconds(60));
}

TEST_CASE("tasks: work of an earlier run of the server can be cancelled in both eras") {
  for (const auto& [stateless, status] : {std::pair(true, TaskStatus::working),
                                          {false, TaskStatus::working},
                                          // of a silent command that runs
                                          {true, TaskStatus::completed},
                                          {false, TaskStatus::completed}}) {
    CAPTURE(stateless);
    House house;
    house.lost_tasks.status = status;
    House::Client client(house, "alice");
    client.initialize();
    const auto ask = [&client, stateless = stateless](const char* method) {
      return stateless ? client.stateless(method, {{"taskId", k_lost_task}}, k_follows_tasks)
                       : client.ask(method, {{"taskId", k_lost_task}});
    };
    CHECK(ask("tasks/cancel").contains("result"));
    CHECK(house.lost_tasks.status == TaskStatus::cancelled);
    CHECK(field(ask("tasks/get"), "result", "status") == "cancelled");
    // A task that has ended cannot be cancelled in 2025-11-25; the extension acknowledges it.
    CHECK(ask("tasks/cancel").contains(stateless ? "result" : "error"));
    if (!stateless) {
      CHECK(field(ask("tasks/result"), "error", "message") == "The task was cancelled");
    }
  }
}

TEST_CASE("tasks: another owner's task is reported as unknown") {
  House house;
  House::Client bob(house, "bob");
  const auto ask = [&](const char* method, const std::string& id) {
    return field(bob.stateless(method, {{"taskId", id}}, k_follows_tasks), "error");
  };
  const std::string unknown = "task_" + std::string(32, 'b');
  for (const char* method : {"tasks/get", "tasks/cancel", "tasks/update"}) {
    CAPTURE(method);
    CHECK(field(ask(method, k_lost_task), "code") == k_invalid_params);
    CHECK(field(ask(method, k_lost_task), "message") == "Task not found: " + k_lost_task);
    CHECK(field(ask(method, unknown), "code") == k_invalid_params);
    CHECK(field(ask(method, unknown), "message") == "Task not found: " + unknown);
  }
  CHECK(house.lost_tasks.status == TaskStatus::working);
}

TEST_CASE("tasks: an id of another form is not looked up") {
  House house;
  House::Client client(house, "alice");
  for (const std::string id : {"", "task_", "task_00", "task_../../etc", "proc_1_abc"}) {
    CAPTURE(id);
    CHECK(field(client.stateless("tasks/get", {{"taskId", id}}, k_follows_tasks), "error", "code") == k_invalid_params);
  }
  CHECK(house.lost_tasks.asked_patience == milliseconds(-1));
}

TEST_CASE("skills: the list has frontmatter, size and digest of each skill's content") {
  House house;
  House::Client client(house, "alice");
  const json list = field(client.stateless("skills/list"), "result");
  REQUIRE(field(list, "skills").size() == 2);  // the third names a tool that this server does not have
  CHECK(field(list, "cacheScope") == "public");
  for (const json& skill : field(list, "skills")) {
    REQUIRE(field(skill, "resources").size() == 1);
    const json contents =
        field(client.stateless("resources/read", {{"uri", field(skill, "uri")}}), "result", "contents", 0);
    const std::string text = field(contents, "text");
    CHECK(field(contents, "mimeType") == "text/markdown");
    CHECK(field(skill, "resources", 0, "uri") == field(skill, "uri"));
    CHECK(field(skill, "resources", 0, "size") == text.size());
    CHECK(field(skill, "resources", 0, "digest") == "sha256:" + sha256_hex(text));
    CHECK(text.starts_with("---\nname: " + field(skill, "frontmatter", "name").get<std::string>() + "\n"));
    const json got = field(client.stateless("skills/get", {{"uri", field(skill, "uri")}}), "result");
    CHECK(field(got, "skill") == skill);
    CHECK(got.contains("ttlMs"));
  }
  CHECK(field(client.stateless("resources/list"), "result", "resources").size() == 3);
  CHECK(field(client.stateless("skills/get", {{"uri", "skill://test/none/SKILL.md"}}), "error", "code") ==
        k_invalid_params);
  CHECK(field(client.stateless("skills/get"), "error", "code") == k_invalid_params);
}

TEST_CASE("skills: a client sees only skills whose tools it may use") {
  House house;
  House::Client client(house, "alice", std::set<std::string>{"mark"});
  const json list = field(client.stateless("skills/list"), "result");
  REQUIRE(field(list, "skills").size() == 1);
  CHECK(field(list, "skills", 0, "uri") == "skill://test/one/SKILL.md");
  CHECK(field(list, "cacheScope") == "private");
  CHECK(field(client.stateless("resources/list"), "result", "resources").size() == 2);
  const json hidden = {{"uri", "skill://test/both/SKILL.md"}};
  CHECK(field(client.stateless("skills/get", hidden), "error", "code") == k_invalid_params);
  CHECK(field(client.stateless("resources/read", hidden), "error", "code") == k_invalid_params);
}

TEST_CASE("skills: only the stateless revision announces and serves them") {
  House house;
  House::Client client(house, "alice");
  const json extensions = field(client.stateless("server/discover"), "result", "capabilities", "extensions");
  CHECK(field(extensions, "io.modelcontextprotocol/skills") == json::object());
  CHECK(extensions.contains(k_tasks_extension));
  const json initialized = client.ask("initialize", {{"protocolVersion", "2025-11-25"}});
  CHECK_FALSE(field(initialized, "result", "capabilities").contains("extensions"));
  CHECK(field(client.ask("skills/list", json::object()), "error", "code") == k_method_not_found);
  CHECK(field(client.ask("resources/list", json::object()), "result", "resources").size() == 1);
  CHECK(field(client.ask("resources/read", {{"uri", "skill://test/one/SKILL.md"}}), "error", "code") ==
        k_handshake_resource_not_found);
}

TEST_CASE("tasks: a result is delivered when its task has it, unless it was cancelled") {
  for (const bool cancelled : {false, true}) {
    House house;
    House::Client client(house, "alice");
    const json task = field(client.stateless("tools/call", {{"name", "task"}}, k_follows_tasks), "result");
    house.gate.wait_for_arrivals(1);
    CHECK(house.deliveries.so_far() == 0);
    if (cancelled) {
      const json named = {{"taskId", field(task, "taskId")}};
      CHECK(field(client.stateless("tasks/cancel", named, k_follows_tasks), "result", "resultType") == "complete");
    }
    house.gate.open();
    CHECK(house.deliveries.settled() == (cancelled ? 0 : 1));
  }
}

TEST_CASE("resources: listed, read and completed; an unknown one is an error in each era") {
  House house;
  House::Client client(house, "alice");
  CHECK(field(client.stateless("resources/list"), "result", "resources", 0, "uri") == "test://one");
  CHECK(field(client.stateless("resources/read", {{"uri", "test://one"}}), "result", "contents", 0, "text") == "1");
  CHECK(field(client.stateless("resources/read", {{"uri", "test://two"}}), "error", "code") == k_invalid_params);
  CHECK(field(client.stateless("completion/complete", {{"ref", {{"type", "ref/resource"}, {"uri", "test://{n}"}}},
                                                       {"argument", {{"name", "n"}, {"value", "a"}}}}),
              "result", "completion", "values") == json::array({"a1", "a2"}));
  client.initialize();
  CHECK(field(client.ask("resources/read", {{"uri", "test://two"}}), "error", "code") ==
        k_handshake_resource_not_found);
}

TEST_CASE("lists: a cursor that was not issued is refused") {
  House house;
  House::Client client(house, "alice");
  for (const json& cursor : {json("7"), json("x"), json(""), json(1), json("-1")}) {
    CHECK(field(client.stateless("tools/list", {{"cursor", cursor}}), "error", "code") == k_invalid_params);
  }
}

TEST_CASE("lists: pages of a long list have each entry once and in order") {
  std::vector<Tool> many(250);
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i].name = "tool" + std::to_string(i);
  }
  const Server server({"test", "Test", "1", ""}, {many});
  json cursor;
  std::size_t seen = 0;
  do {
    const auto page = server.lists.tools(Revision::v2025_11_25, Representation::text, cursor);
    REQUIRE(page);
    for (const json& tool : page->at("tools")) {
      CHECK(field(tool, "name") == "tool" + std::to_string(seen++));
    }
    cursor = page->value("nextCursor", json());
  } while (!cursor.is_null());
  CHECK(seen == 250);
}

TEST_CASE("prompts: a missing argument is an error") {
  House house;
  House::Client client(house, "alice");
  CHECK(field(client.stateless("prompts/get", {{"name", "greet"}, {"arguments", {{"who", "you"}}}}), "result",
              "messages", 0) == "you");
  CHECK(field(client.stateless("prompts/get", {{"name", "greet"}}), "error", "code") == k_invalid_params);
  CHECK(field(client.stateless("prompts/get", {{"name", "greet"}, {"arguments", {{"who", 5}}}}), "error", "code") ==
        k_invalid_params);
  CHECK(field(client.stateless("prompts/get", {{"name", "nobody"}}), "error", "code") == k_invalid_params);
}

TEST_CASE("logging: a client gets messages from its severity on, none before it chooses") {
  House house;
  House::Client client(house, "alice");
  client.initialize();
  CHECK(client.ask("tools/call", {{"name", "log"}}).contains("result"));
  CHECK(field(client.ask("logging/setLevel", {{"level", "shout"}}), "error", "code") == k_invalid_params);
  CHECK(client.ask("logging/setLevel", {{"level", "warning"}}).contains("result"));
  const json message = client.ask("tools/call", {{"name", "log"}});
  CHECK(field(message, "method") == "notifications/message");
  CHECK(field(message, "params", "level") == "error");
  CHECK(result_text(field(client.next(), "result")) == "logged");
}

TEST_CASE("logging: a client that enabled messages gets the outcome of each call") {
  House house;
  House::Client client(house, "alice");
  client.initialize();
  CHECK(client.ask("logging/setLevel", {{"level", "info"}}).contains("result"));
  CHECK(field(client.ask("tools/call", {{"name", "log"}}), "params", "level") == "error");  // the tool's own
  const json message = client.next();
  CHECK(field(message, "method") == "notifications/message");
  CHECK(field(message, "params", "level") == "info");
  CHECK(field(message, "params", "data", "tool") == "log");
  CHECK(field(message, "params", "data", "outcome") == "ok");
  CHECK(result_text(field(client.next(), "result")) == "logged");
}

TEST_CASE("questions: a handshake client's answer or refusal reaches the tool") {
  House house;
  House::Client client(house, "alice");
  client.initialize();
  json question = client.ask("tools/call", {{"name", "ask"}});
  CHECK(field(question, "method") == "roots/list");
  client.send(result_message(field(question, "id"), {{"roots", json::array()}}));
  CHECK(result_text(field(client.next(), "result")) == R"({"q":{"roots":[]}})");
  question = client.ask("tools/call", {{"name", "ask"}});
  client.send(error_message(field(question, "id"), -1, "not here"));
  CHECK(result_text(field(client.next(), "result")) == "The client refused: not here");
}

TEST_CASE("listeners: get only requested notices, under the id of their request") {
  House house;
  House::Client client(house, "alice");
  client.send(request_message(
      "sub", "subscriptions/listen",
      {{"_meta", meta()},
       {"notifications", {{"toolsListChanged", true}, {"resourceSubscriptions", {"test://one", "test://none"}}}}}));
  const json acknowledged = client.next();
  CHECK(field(acknowledged, "method") == "notifications/subscriptions/acknowledged");
  CHECK(field(acknowledged, "params", "notifications") ==
        json{{"toolsListChanged", true}, {"resourceSubscriptions", {"test://one"}}});
  house.hub.bulletin.publish({Notice::Kind::prompts_changed});
  house.hub.bulletin.publish({Notice::Kind::resource_updated, "test://one", "bob"});
  house.hub.bulletin.publish({Notice::Kind::tools_changed});
  const json changed = client.next();
  CHECK(field(changed, "method") == "notifications/tools/list_changed");
  CHECK(field(changed, "params", "_meta", k_meta_subscription) == "sub");
  house.hub.bulletin.publish({Notice::Kind::resource_updated, "test://one", "alice"});
  CHECK(field(client.next(), "params", "uri") == "test://one");
  client.send(notification_message("notifications/cancelled", {{"requestId", "sub"}}));
  house.hub.bulletin.publish({Notice::Kind::tools_changed});
  CHECK(client.stateless("server/discover").contains("result"));
}

TEST_CASE("resources: a caller without the tool cannot read, watch or complete its data") {
  House house;
  for (const bool may : {true, false}) {
    CAPTURE(may);
    House::Client client(house, "alice", std::set<std::string>{may ? "mark" : "log"});
    const json listened =
        client.stateless("subscriptions/listen", {{"notifications", {{"resourceSubscriptions", {"test://one"}}}}});
    CHECK(field(listened, "params", "notifications").contains("resourceSubscriptions") == may);
    client.initialize();
    const json read = client.ask("resources/read", {{"uri", "test://one"}});
    CHECK(read.contains("result") == may);
    CHECK((may || field(read, "error", "code") == k_handshake_resource_not_found));
    CHECK(client.ask("resources/subscribe", {{"uri", "test://one"}}).contains("result") == may);
    const json completed = client.ask(
        "completion/complete",
        {{"ref", {{"type", "ref/resource"}, {"uri", "test://{n}"}}}, {"argument", {{"name", "n"}, {"value", "a"}}}});
    CHECK(field(completed, "result", "completion", "values").size() == (may ? 2 : 0));
  }
}

TEST_CASE("resources: updates are sent from subscription to unsubscription") {
  House house;
  House::Client client(house, "alice");
  client.initialize();
  CHECK(field(client.ask("resources/subscribe", {{"uri", "test://none"}}), "error", "code") == k_invalid_params);
  CHECK(client.ask("resources/subscribe", {{"uri", "test://one"}}).contains("result"));
  house.hub.bulletin.publish({Notice::Kind::resource_updated, "test://one"});
  CHECK(field(client.next(), "method") == "notifications/resources/updated");
  CHECK(client.ask("resources/unsubscribe", {{"uri", "test://one"}}).contains("result"));
  house.hub.bulletin.publish({Notice::Kind::resource_updated, "test://one"});
  CHECK(field(client.ask("ping", json::object()), "result") == json::object());
}

TEST_CASE("once: a key is valid across connections, and only for its owner") {
  House house;
  House::Client one(house, "alice");
  House::Client other(house, "alice");
  House::Client bob(house, "bob");
  const auto params = [](const json& arguments) {
    json with_key = meta();
    with_key[k_meta_idempotency_key] = "k1";
    return json{{"name", "gate"}, {"arguments", arguments}, {"_meta", with_key}};
  };
  one.send(request_message(1, "tools/call", params(json::object())));
  other.send(request_message(1, "tools/call", params(json::object())));
  house.gate.open();
  CHECK(result_text(field(one.next(), "result")) == "through");
  CHECK(result_text(field(other.next(), "result")) == "through");
  CHECK(house.gate.arrived() == 1);
  CHECK(result_text(field(one.ask("tools/call", params(json::object())), "result")) == "through");
  CHECK(house.gate.arrived() == 1);
  CHECK(field(one.ask("tools/call", params({{"other", 1}})), "result", "structuredContent", "error", "code") ==
        "idempotency_conflict");
  CHECK(result_text(field(bob.ask("tools/call", params(json::object())), "result")) == "through");
  CHECK(house.gate.arrived() == 2);
}

TEST_CASE("once: the mark of a call differs by owner, key and arguments") {
  House house;
  House::Client alice(house, "alice");
  House::Client bob(house, "bob");
  const auto mark = [](House::Client& client, const std::string& key, const json& arguments) {
    json with_key = meta();
    with_key[k_meta_idempotency_key] = key;
    const std::string text = result_text(
        field(client.ask("tools/call", {{"name", "mark"}, {"arguments", arguments}, {"_meta", with_key}}), "result"));
    REQUIRE(text.size() == 65);
    return std::pair(text.substr(0, 32), text.substr(33));
  };
  const auto first = mark(alice, "../k", {{"a", 1}, {"b", 2}});
  CHECK(first.first.find_first_not_of("0123456789abcdef") == std::string::npos);
  const auto other_key = mark(alice, "k2", {{"b", 2}, {"a", 1}});
  CHECK(other_key.first != first.first);
  CHECK(other_key.second == first.second);
  const auto other_owner = mark(bob, "../k", {{"a", 2}});
  CHECK(other_owner.first != first.first);
  CHECK(other_owner.second != first.second);
  CHECK(once_mark("a", "bc", "").key != once_mark("ab", "c", "").key);
  CHECK(result_text(field(alice.stateless("tools/call", {{"name", "mark"}}), "result")) == "none");
}

TEST_CASE("once: a repetition gets the stored error, unless the tool allows repetition") {
  House house;
  House::Client client(house, "alice");
  const auto call = [&](const std::string& key, bool may_be_repeated) {
    json with_key = meta();
    with_key[k_meta_idempotency_key] = key;
    const json params = {{"name", "fail"}, {"arguments", {{"mayBeRepeated", may_be_repeated}}}, {"_meta", with_key}};
    CHECK(field(client.ask("tools/call", params), "result", "isError") == true);
  };
  call("one", false);
  call("one", false);
  CHECK(house.failed == 1);
  call("two", true);
  call("two", true);
  CHECK(house.failed == 3);
}

TEST_CASE("once: a cancelled call can be made again under its key") {
  House house;
  House::Client client(house, "alice");
  json with_key = meta();
  with_key[k_meta_idempotency_key] = "k";
  const json params = {{"name", "gate"}, {"_meta", with_key}};
  client.send(request_message("first", "tools/call", params));
  house.gate.wait_for_arrivals(1);
  client.send(notification_message("notifications/cancelled", {{"requestId", "first"}}));
  house.gate.open();
  CHECK(result_text(field(client.ask("tools/call", params), "result")) == "through");
  CHECK(house.gate.arrived() == 2);
}

TEST_CASE("state seal: only unchanged state is accepted") {
  const StateSeal seal;
  const json value = {{"round", 2}, {"name", "日本"}};
  const std::string sealed = seal.seal(value);
  CHECK(seal.open(sealed) == value);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_FALSE(seal.open(changed));
  }
  CHECK_FALSE(StateSeal().open(sealed));
  CHECK_FALSE(seal.open(""));
}
