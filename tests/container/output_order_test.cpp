// Order of stdout and stderr, and the output that repeated calls of check_process show.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/served.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Calls check_process like a client, which shows only new output.
std::string check_news(Server& server, const std::string& process, json more = json::object()) {
  more["all"] = false;
  return text_of(check(server, process, std::move(more)));
}

json send_line(Server& server, const std::string& process, const std::string& line) {
  return server.call("send_input", {{"processId", process}, {"input", line}});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A process that writes to both streams in turn. It waits for a line of input before each step, so the keeper reads
/// the output of one step before the next. The first step follows the reply to its start.
constexpr const char* k_steps =
    "sleep 1; echo one; read x; echo two >&2; read x; echo three; read x; echo four >&2; read x";
constexpr const char* k_all_steps = "one\n[stderr]\ntwo\n[stdout]\nthree\n[stderr]\nfour";

/// A client's session with an HTTP server.
class HttpSession {
 public:
  HttpSession(int port, const std::string& token) : m_port(port), m_token(token) {
    HttpConnection connection(m_port);
    send(connection, "initialize", {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}});
    m_session = connection.receive().header("Mcp-Session-Id");
    REQUIRE_FALSE(m_session.empty());
  }
  void send_call(HttpConnection& connection, const std::string& tool, json arguments) const {
    arguments["rationale"] = "test";
    send(connection, "tools/call", {{"name", tool}, {"arguments", std::move(arguments)}});
  }
  [[nodiscard]] json call(const std::string& tool, const json& arguments) const {
    HttpConnection connection(m_port);
    send_call(connection, tool, arguments);
    return field(connection.receive().json(), "result");
  }
  [[nodiscard]] std::string check(const std::string& process, json more = json::object()) const {
    more["processId"] = process;
    return text_of(call("check_process", more));
  }

 private:
  void send(HttpConnection& connection, const std::string& method, const json& params) const {
    HttpHeaders headers = {"Content-Type: application/json", "Accept: application/json, text/event-stream",
                           "Authorization: Bearer " + m_token};
    if (!m_session.empty()) {
      headers.push_back("Mcp-Session-Id: " + m_session);
    }
    const json body = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
    connection.send_request("POST", "/mcp", headers, body.dump());
  }
  int m_port;
  std::string m_token;
  std::string m_session;
};

}  // namespace

TEST_CASE("order: both streams appear in the order of writing") {
  Connected c;
  const json result = c.server.execute("echo a; sleep 0.3; echo b >&2; sleep 0.3; echo c");
  CAPTURE(text_of(result));
  CHECK(text_of(result).starts_with("a\n[stderr]\nb\n[stdout]\nc\n"));
  CHECK(field(fields_of(result), "stdout") == "a\nc\n");
  CHECK(field(fields_of(result), "stderr") == "b\n");
  CHECK(text_of(c.server.execute("echo oops >&2")).starts_with("[stderr]\noops\n"));
  CHECK(text_of(c.server.execute("echo fine")).starts_with("fine\n"));
  const json broken_line = c.server.execute("printf 'loading '; sleep 0.3; echo b >&2; sleep 0.3; echo done");
  CHECK(text_of(broken_line).starts_with("loading done\n[stderr]\nb\n"));
}

TEST_CASE("order: kept for a long-running process and a lost one") {
  Connected c;
  const std::string id = start_in_background(c.server, k_steps);
  for (int step = 0; step < 3; ++step) {
    (void)check(c.server, id, {{"waitFor", {{"input", true}}}});
    (void)send_line(c.server, id, "go");
  }
  CHECK(contains(text_of(check(c.server, id)), k_all_steps));
  for (const int pid : c.container.pids_of(k_keeper)) {
    ::kill(pid, SIGKILL);
  }
  eventually("the process is lost", [&] { return field(fields_of(check(c.server, id)), "status") == "lost"; });
  CHECK(contains(text_of(check(c.server, id)), k_all_steps));
  (void)control(c.server, id, "kill");
}

TEST_CASE("order: a flood of stdout between two lines of stderr is stored in order") {
  Connected c;
  const json result = c.server.execute("echo begin >&2; sleep 0.3; yes | head -c 100000000; sleep 0.3; echo end >&2",
                                       {{"maxOutput", 2000}});
  CAPTURE(text_of(result));
  CHECK(field(fields_of(result), "stdoutBytes") == 100000000);
  CHECK(field(fields_of(result), "stderrBytes") == 10);
  CHECK(contains(text_of(result), "[stderr]\nbegin\n[stdout]\ny\n"));
  CHECK(contains(text_of(result), " more times]\n[stderr]\nend\n"));
}

TEST_CASE("order: 20,000 stream changes lose no byte, and the last is in place") {
  Connected c;
  const json result = c.server.execute(
      "for i in $(seq 10000); do echo o$i; echo e$i >&2; done; sleep 0.3; echo last-o; sleep 0.3; echo last-e >&2",
      {{"maxOutput", 400000}});
  std::string out;
  std::string err;
  for (int i = 1; i <= 10000; ++i) {
    out += fmt::format("o{}\n", i);
    err += fmt::format("e{}\n", i);
  }
  CHECK(field(fields_of(result), "stdout") == out + "last-o\n");
  CHECK(field(fields_of(result), "stderr") == err + "last-e\n");
  CHECK(contains(text_of(result), "last-o\n[stderr]\nlast-e\n"));
}

TEST_CASE("check_process: shows only what the client was not shown") {
  Connected c;
  const std::string id = start_in_background(c.server, k_steps);
  const std::string first = check_news(c.server, id, {{"waitFor", {{"input", true}}}});
  CAPTURE(first);
  CHECK(contains(first, "one"));
  const std::string again = check_news(c.server, id);
  CAPTURE(again);
  CHECK(contains(again, "No new output."));
  CHECK(contains(again, "since"));
  CHECK_FALSE(contains(again, "one"));

  CHECK(contains(text_of(send_line(c.server, id, "go")), "two"));
  CHECK(contains(check_news(c.server, id), "No new output."));
  CHECK(contains(text_of(check(c.server, id, {{"since", "0:0"}})), "one\n[stderr]\ntwo"));
  CHECK(contains(text_of(check(c.server, id, {{"tail", 1}})), "one\n[stderr]\ntwo"));
  CHECK(contains(text_of(check(c.server, id)), "one\n[stderr]\ntwo"));
  CHECK(contains(check_news(c.server, id), "No new output."));
  (void)control(c.server, id, "kill");
}

TEST_CASE("check_process: two sessions of one owner have separate cursors") {
  const Served served;
  const HttpSession first(served.port(), k_alice);
  const HttpSession second(served.port(), k_alice);
  const json started = first.call("execute_command", {{"command", k_steps}, {"background", true}});
  const std::string id = field(fields_of(started), "processId");
  CHECK(contains(first.check(id, {{"waitFor", {{"input", true}}}}), "one"));
  CHECK(contains(first.check(id), "No new output."));
  CHECK(contains(second.check(id), "one"));
  CHECK(contains(second.check(id), "No new output."));
  (void)first.call("send_input", {{"processId", id}, {"input", "go"}});
  CHECK(contains(first.check(id), "No new output."));
  CHECK(contains(second.check(id), "[stderr]\ntwo"));
  (void)first.call("control_process", {{"processId", id}, {"action", "kill"}});
}

TEST_CASE("check_process: a reply that did not reach its client shows nothing") {
  const Served served;
  const HttpSession session(served.port(), k_alice);
  const HttpSession other(served.port(), k_alice);
  const json started = session.call("execute_command", {{"command", "read x; echo two; read x"}, {"background", true}});
  const std::string id = field(fields_of(started), "processId");
  {
    HttpConnection leaving(served.port());
    session.send_call(leaving, "check_process",
                      {{"processId", id}, {"waitFor", {{"pattern", "two"}, {"input", false}}}});
    leaving.close();
  }
  (void)other.call("send_input", {{"processId", id}, {"input", "go"}});
  eventually("the call is over",
             [&] { return contains(served.get("/metrics"), "{tool=\"check_process\",outcome=\"ok\"} 1"); });
  CHECK(contains(session.check(id), "two"));
  CHECK(contains(session.check(id), "No new output."));
  (void)session.call("control_process", {{"processId", id}, {"action", "kill"}});
}

TEST_CASE("check_process: a cancelled call shows nothing") {
  Connected c;
  const std::string id = start_in_background(c.server, "sleep 1; echo one; read x; echo two; read x");
  // The call is cancelled after progress has reported the output.
  const int cancelled =
      c.server.start_call("check_process", {{"processId", id}, {"waitFor", {{"pattern", "two"}, {"input", false}}}},
                          {{"progressToken", 1}});
  while (c.server.receive().dump().find("one") == std::string::npos) {
  }
  c.server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", cancelled}}}});
  CHECK(contains(check_news(c.server, id, {{"waitFor", {{"input", true}}}}), "one"));
  (void)control(c.server, id, "kill");
}
