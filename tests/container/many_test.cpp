#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr int k_processes = 500;
/// Number of concurrent calls that a server accepts.
constexpr int k_at_once = 200;

/// Makes a call for each number, at most as many at once as the server accepts. Returns the results in order.
template <typename Arguments>
std::vector<json> call_all(Server& server, const std::string& tool, const Arguments& arguments_for) {
  std::vector<int> calls;
  std::vector<json> results;
  while (results.size() < k_processes) {
    while (calls.size() < k_processes && calls.size() - results.size() < k_at_once) {
      calls.push_back(server.start_call(tool, arguments_for(static_cast<int>(calls.size()))));
    }
    const json answer = server.receive_answer(calls[results.size()], seconds(120));
    REQUIRE_MESSAGE(answer.contains("result"), answer.dump());
    results.push_back(field(answer, "result"));
  }
  return results;
}

}  // namespace

TEST_CASE("many: 500 processes at once have separate state and output, and all are killed") {
  Connected c(std::vector<std::string>{});  // without init: no other process reaps orphans
  std::vector<std::string> ids;
  for (const json& started : call_all(c.server, "execute_command", [](int i) {
         return json{{"command", fmt::format("echo out {}; echo err {} >&2; sleep 1000", i, i)}, {"background", true}};
       })) {
    REQUIRE(field(fields_of(started), "status") == "running");
    ids.push_back(field(fields_of(started), "processId"));
  }
  REQUIRE(std::set<std::string>(ids.begin(), ids.end()).size() == k_processes);

  const auto printed = call_all(c.server, "check_process", [&](int i) {
    return json{{"processId", ids[static_cast<std::size_t>(i)]},
                {"waitFor", {{"pattern", "^err"}}},
                {"timeout", 60},
                {"all", true}};
  });
  for (int i = 0; i < k_processes; ++i) {
    const json fields = fields_of(printed[static_cast<std::size_t>(i)]);
    CAPTURE(fields.dump());
    CHECK(field(fields, "status") == "running");
    CHECK(field(fields, "stdout") == fmt::format("out {}\n", i));
    CHECK(field(fields, "stderr") == fmt::format("err {}\n", i));
  }
  const json listed = fields_of(c.server.call("check_process", json::object()));
  CHECK(field(listed, "processes").size() + field(listed, "leftOut").get<std::size_t>() == k_processes);
  for (const json& process : field(listed, "processes")) {
    CHECK(field(process, "status") == "running");
    CHECK(std::count(ids.begin(), ids.end(), field(process, "processId")) == 1);
  }

  for (const json& killed : call_all(c.server, "control_process", [&](int i) {
         return json{{"processId", ids[static_cast<std::size_t>(i)]}, {"action", "kill"}};
       })) {
    CHECK(field(fields_of(killed), "status") == "completed");
    CHECK(field(fields_of(killed), "signal") == "SIGKILL");
  }
  eventually("nothing of them is left",
             [&] { return c.container.pids_of("sleep 1000").empty() && c.container.pids_of(k_keeper).size() <= 4; });
  CHECK(c.container.zombies() == 0);
  CHECK(field(fields_of(c.server.execute("echo well")), "stdout") == "well\n");
}
