// The tools of older servers that --compat lists, and the metrics of sessions, with the real program.

#include <doctest/doctest.h>

#include "support/connected.hpp"
#include "support/http.hpp"
#include "support/http_port.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

const std::vector<std::string> k_both = {"--compat", "repl,coderunner"};

json call(Server& server, const std::string& tool, const json& arguments) {
  const int id = server.send_request("tools/call", {{"name", tool}, {"arguments", arguments}});
  return field(server.receive_answer(id, seconds(60)), "result");
}

bool says(const json& result, const std::string& text) {
  CAPTURE(text_of(result));
  return text_of(result).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("compat: shell runs a command with a directory and a program, without a rationale") {
  Connected c({"--init"}, "dockbridge-test:slim", k_both);
  const json plain = call(c.server, "shell", {{"command", "echo it\\'s; exit 3"}});
  CHECK(says(plain, "it's"));
  CHECK(field(plain, "_meta", "dockbridge/result", "exitCode") == 3);
  const json given =
      call(c.server, "shell", {{"command", "echo \"$0 'a' $(pwd)\""}, {"shell", "/bin/sh"}, {"working_dir", "/tmp"}});
  CHECK(says(given, "/bin/sh 'a' /tmp"));
  CHECK(field(call(c.server, "shell", json::object()), "isError") == true);
}

TEST_CASE("compat: shell_status shows a command that was left running") {
  Connected c({"--init"}, "dockbridge-test:slim", {"--compat", "repl", "--inactivity-timeout", "0.2"});
  const json left = call(c.server, "shell", {{"command", "sleep 1; echo done"}});
  CHECK(says(left, "still running"));
  const std::string task = short_id_in(text_of(left));
  eventually("it has ended", [&] { return says(call(c.server, "shell_status", {{"task_id", task}}), "Exit code: 0"); });
}

TEST_CASE("compat: python_session keeps its state under a given or a new id") {
  Connected c({"--init"}, "dockbridge-test:slim", k_both);
  (void)call(c.server, "python_session", {{"code", "x = 41"}, {"session_id", "abc"}});
  CHECK(says(call(c.server, "python_session", {{"code", "x + 1"}, {"session_id", "abc"}}), "42"));
  const std::string text = text_of(call(c.server, "python_session", {{"code", "x = 1"}}));
  std::smatch match;
  REQUIRE_MESSAGE(std::regex_search(text, match, std::regex("session_id: \"([^\"]+)\"")), text);
  CHECK(says(call(c.server, "python_session", {{"code", "x + 1"}, {"session_id", match[1].str()}}), "2"));
}

TEST_CASE("compat: execute_python_code keeps its state between calls") {
  Connected c({"--init"}, "dockbridge-test:slim", k_both);
  (void)call(c.server, "execute_python_code", {{"command", "x = 41"}});
  CHECK(says(call(c.server, "execute_python_code", {{"command", "x + 1"}}), "42"));
}

TEST_CASE("compat: python takes python_path") {
  Connected c({"--init"}, "dockbridge-test:slim", k_both);
  const json result = c.server.call("python", {{"code", "1 + 1"}, {"python_path", "/nonexistent/python"}});
  CHECK(field(result, "_meta", "dockbridge/result", "error") == "no_python");
}

TEST_CASE("metrics: sessions, cells and starts are counted") {
  Connected c({"--init"}, "dockbridge-test:slim", {"--http", "127.0.0.1:0", "--stdio", "--no-token"});
  const int port = http_port_of(c.server);
  const auto run = [&](const std::string& code) {
    (void)c.server.call("python", {{"code", code}, {"session", "main"}}, seconds(60));
  };
  run("1 + 1");
  run("1 / 0");
  const std::string text = HttpConnection(port).request("GET", "/metrics", {}).body;
  const auto has = [&](const std::string& line) { return text.find(line + "\n") != std::string::npos; };
  CAPTURE(text);
  CHECK(has("dockbridge_sessions{kind=\"python\",state=\"idle\"} 1"));
  CHECK(has("dockbridge_cells_total{outcome=\"ok\"} 1"));
  CHECK(has("dockbridge_cells_total{outcome=\"error\"} 1"));
  CHECK(has("dockbridge_cell_seconds_count 2"));
  CHECK(has("dockbridge_interpreter_start_seconds_count{start=\"cold\"} 1"));
  run("import os; os._exit(3)");
  const std::string later = HttpConnection(port).request("GET", "/metrics", {}).body;
  CHECK(later.find("dockbridge_cells_total{outcome=\"died\"} 1\n") != std::string::npos);
}
