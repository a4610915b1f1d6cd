#include <functional>
#include <thread>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A server whose client has this name.
struct NamedClient {
  NamedClient(const std::string& name, const std::vector<std::string>& options) : server(options) {
    const json answer = server.request("initialize", {{"protocolVersion", "2025-11-25"},
                                                      {"capabilities", json::object()},
                                                      {"clientInfo", {{"name", name}, {"version", "1"}}}});
    REQUIRE(answer.contains("result"));
  }
  Server server;
};

/// Longer than the grace time of a cancelled command.
bool stops_within(seconds time, const std::function<bool()>& is_gone) {
  for (const auto deadline = Deadline::after(time); !deadline.passed();) {
    if (is_gone()) {
      return true;
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
  return false;
}

}  // namespace

TEST_CASE("client patience: a call returns with the process id before the client's limit") {
  const Container container("dockbridge-test:slim", {"--init"});
  NamedClient client("impatient", {"-c", container.name(), "--client-wait", "impatient=1"});
  const int id = client.server.start_call(
      "execute_command", {{"command", "for i in $(seq 600); do echo $i; sleep 0.1; done"}}, {{"progressToken", 1}});
  const json result = field(client.server.receive_answer(id), "result");
  CHECK(field(fields_of(result), "returned") == "waited_enough");
  CHECK(text_of(result).find(" is still running after 1 s. check_process waits for it.") != std::string::npos);
}

TEST_CASE("client patience: check_process states its wait only if it timed out") {
  const Container container("dockbridge-test:slim", {"--init"});
  NamedClient client("impatient", {"-c", container.name(), "--client-wait", "impatient=1"});
  const std::string id = start_in_background(client.server, "sleep 7663");
  const std::string waited = text_of(check(client.server, id, {{"timeout", 600}}));
  CHECK(waited.find("Not ended after 1 s.") != std::string::npos);
  control(client.server, id, "kill");
  const std::string ended = text_of(check(client.server, id, {{"timeout", 600}}));
  CHECK(ended.find("1 s") == std::string::npos);
}

TEST_CASE("client patience: the client's own timeout leaves the command running") {
  const Container container("dockbridge-test:slim", {"--init"});
  NamedClient client("claude-code", {"-c", container.name()});
  for (const char* reason : {"SdkError: Request timed out", "McpError: MCP error -32001: Request timed out"}) {
    CAPTURE(reason);
    const int id = client.server.start_call("execute_command", {{"command", "sleep 7660"}});
    eventually("the command runs", [&] { return !container.pids_of("sleep 7660").empty(); });
    cancel(client.server, id, reason);
    // opencode sends a second cancellation, with another reason.
    cancel(client.server, id, "AbortError: The operation was aborted.");
    // The note is written at the end of the cancelled call. An order to end the command would have been sent before.
    eventually("the call is over", [&] {
      return text_of(client.server.execute("true")).find("was left running when its call timed out") !=
             std::string::npos;
    });
    CHECK_FALSE(stops_within(seconds(3), [&] { return container.pids_of("sleep 7660").empty(); }));
    const json list = client.server.call("check_process", json::object());
    CHECK(text_of(list).find("sleep 7660") != std::string::npos);
    for (const json& message : client.server.seen) {
      CHECK(message.value("id", json(nullptr)) != id);
    }
    for (const json& process : field(fields_of(list), "processes")) {
      control(client.server, field(process, "processId"), "kill");
    }
    eventually("the command is gone", [&] { return container.pids_of("sleep 7660").empty(); });
  }
}

TEST_CASE("client patience: a later reply names the command that was left running, once") {
  const Container container("dockbridge-test:slim", {"--init"});
  NamedClient client("claude-code", {"-c", container.name()});
  const int id = client.server.start_call("execute_command", {{"command", "sleep 7662"}});
  eventually("the command runs", [&] { return !container.pids_of("sleep 7662").empty(); });
  cancel(client.server, id, "SdkError: Request timed out");
  const std::string note = "Note: p1 `sleep 7662` was left running when its call timed out.";
  int notes = 0;
  eventually("a reply names the command", [&] {
    notes += text_of(client.server.execute("true")).find(note) != std::string::npos ? 1 : 0;
    return notes > 0;
  });
  CHECK(text_of(client.server.execute("true")).find("timed out") == std::string::npos);
  control(client.server, "p1", "kill");
}

TEST_CASE("client patience: a cancellation for another reason ends the command") {
  const Container container("dockbridge-test:slim", {"--init"});
  NamedClient client("codex-mcp-client", {"-c", container.name()});
  for (const char* reason : {"MCP request cancelled by caller", "AbortError: user-cancel"}) {
    CAPTURE(reason);
    const int id = client.server.start_call("execute_command", {{"command", "sleep 7661"}});
    eventually("the command runs", [&] { return !container.pids_of("sleep 7661").empty(); });
    cancel(client.server, id, reason);
    eventually("the command is gone", [&] { return container.pids_of("sleep 7661").empty(); });
  }
}
