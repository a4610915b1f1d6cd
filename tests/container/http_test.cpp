#include <doctest/doctest.h>

#include <csignal>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/http.hpp"
#include "support/served.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Value of a line of Prometheus text; nullopt if there is no such line.
std::optional<double> value_of(const std::string& metrics, const std::string& name) {
  const std::size_t found = metrics.find("\n" + name + " ");
  return found == std::string::npos ? std::nullopt : std::optional(std::stod(metrics.substr(found + name.size() + 2)));
}

}  // namespace

TEST_CASE("http: metrics count calls, processes, bytes and rejections") {
  const Served served;
  const std::string unused = served.get("/metrics");
  CHECK(value_of(unused, "dockbridge_agent_reconnects_total") == 0);
  CHECK_FALSE(value_of(unused, "dockbridge_agent_round_trip_seconds"));  // a query does not connect
  CHECK(served.container.pids_of(k_session).empty());

  CHECK(field(fields_of(served.call(k_alice, "execute_command", {{"command", "true"}})), "exitCode") == 0);
  (void)served.call(k_bob, "execute_command", {{"command", "sleep 300"}, {"background", true}});
  for (const int pid : served.container.pids_of(k_session)) {
    ::kill(pid, SIGKILL);
  }
  CHECK(field(fields_of(served.call(k_alice, "execute_command", {{"command", "exit 3"}})), "exitCode") == 3);
  CHECK(field(served.call(k_alice, "check_process", {{"processId", "nonsense"}}), "isError") == true);
  CHECK(HttpConnection(served.port()).request("POST", "/mcp", {"Content-Type: application/json"}, "{}").status == 401);
  CHECK(HttpConnection(served.port())
            .request("POST", "/mcp", {"Content-Type: text/plain", "Authorization: Bearer " + k_alice}, "{}")
            .status == 415);

  const std::string metrics = served.get("/metrics");
  CAPTURE(metrics);
  CHECK(value_of(metrics, R"(dockbridge_calls_total{tool="execute_command",outcome="ok"})") == 3);
  CHECK(value_of(metrics, R"(dockbridge_calls_total{tool="check_process",outcome="bad_process_id"})") == 1);
  CHECK(value_of(metrics, R"(dockbridge_call_seconds_bucket{tool="execute_command",le="+Inf"})") == 3);
  CHECK(value_of(metrics, R"(dockbridge_call_seconds_count{tool="execute_command"})") == 3);
  CHECK(value_of(metrics, R"(dockbridge_call_seconds_sum{tool="execute_command"})").value_or(0) > 0);
  CHECK(value_of(metrics, R"(dockbridge_processes{phase="running"})") == 1);
  CHECK(value_of(metrics, R"(dockbridge_processes{phase="closed"})") == 2);
  CHECK(value_of(metrics, R"(dockbridge_http_bytes_total{direction="received"})").value_or(0) > 1000);
  CHECK(value_of(metrics, R"(dockbridge_http_bytes_total{direction="sent"})").value_or(0) > 1000);
  CHECK(value_of(metrics, "dockbridge_agent_reconnects_total") == 1);
  CHECK(value_of(metrics, "dockbridge_agent_round_trip_seconds").value_or(0) > 0);
  CHECK(value_of(metrics, R"(dockbridge_refusals_total{reason="401"})") == 1);
  CHECK(value_of(metrics, R"(dockbridge_refusals_total{reason="415"})") == 1);

  const json health = json::parse(served.get("/healthz"));
  CHECK(field(health, "status") == "ok");
  CHECK(field(health, "version").is_string());
  CHECK(field(health, "uptimeSeconds").is_number());
  CHECK(field(health, "sessions") == 0);
  CHECK(field(health, "processes", "running") == 1);
  CHECK(field(json::parse(served.get("/readyz")), "container") == served.container.name());
}

TEST_CASE("http: no request shows another owner's process") {
  const Served served;
  const json started = served.call(k_alice, "execute_command", {{"command", "sleep 300"}, {"background", true}});
  const std::string id = field(fields_of(started), "processId");
  const std::string unknown = id.substr(0, id.size() - 4) + "zzzz";
  const auto asked = [&](const std::string& process) {
    json answers = json::array({served.call(k_bob, "check_process", {{"processId", process}}),
                                served.call(k_bob, "send_input", {{"processId", process}, {"input", "x"}}),
                                served.call(k_bob, "control_process", {{"processId", process}, {"action", "kill"}}),
                                served.read(k_bob, "dockbridge://process/" + process + "/stdout")});
    std::string text = answers.dump();
    for (std::size_t at = 0; (at = text.find(process)) != std::string::npos;) {
      text.replace(at, process.size(), "ID");
    }
    return text;
  };
  CHECK(asked(id) == asked(unknown));  // its existence is not revealed
  CHECK(field(fields_of(served.call(k_bob, "check_process", json::object())), "processes").empty());
  CHECK(served.read(k_bob, "dockbridge://processes").dump().find(id) == std::string::npos);
  CHECK(served.read(k_alice, "dockbridge://processes").dump().find(id) != std::string::npos);
  CHECK(field(fields_of(served.call(k_alice, "check_process", {{"processId", id}})), "status") == "running");
}

TEST_CASE("http: the log has the trace id of a call") {
  Served served;
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  (void)served.call(k_alice, "execute_command", {{"command", "true"}}, {{"traceparent", trace}, {"tracestate", "a=b"}});
  eventually("the call is logged", [&] { return served.server.log().find("trace=" + trace) != std::string::npos; });
  CHECK(served.server.log().find("a=b") != std::string::npos);
}

TEST_CASE("http: at SIGTERM a call is answered, and its command continues") {
  Served served;
  HttpConnection connection(served.port());
  served.send_call(connection, k_alice, "execute_command", {{"command", "sleep 301"}});
  eventually("the command runs", [&] { return !served.container.pids_of("sleep").empty(); });
  served.server.signal(SIGTERM);
  const json result = field(connection.receive().json(), "result");
  CHECK(field(fields_of(result), "returned") == "detached");
  const int status = served.server.wait_for_exit();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  Server next({"-c", served.container.name()});
  next.initialize();
  CHECK(served.container.sh("pgrep -f 'sleep 301' | wc -l") != "0");
}
