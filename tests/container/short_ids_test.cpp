// Short process ids (p1, p2, ...), and the list of processes.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <regex>
#include <set>
#include <sstream>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/served.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

std::string start_sleep(Server& server) {
  return short_id_in(text_of(server.execute("sleep 600", {{"background", true}, {"timeout", 0}})));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::string list(Server& server) {
  return text_of(server.call("check_process", json::object()));
}

}  // namespace

TEST_CASE("short ids: every process tool takes them, and replies use them") {
  Connected c;
  const json started = c.server.execute("echo hello; read x; echo got $x; sleep 600", {{"background", true}});
  CHECK(short_id_in(text_of(started)) == "p1");
  const std::string long_id = field(fields_of(started), "processId");
  CHECK(text_of(started).find(long_id) == std::string::npos);
  CHECK(field(fields_of(check(c.server, "p1")), "processId") == long_id);
  CHECK(field(fields_of(check(c.server, long_id)), "processId") == long_id);
  CHECK(text_of(check(c.server, long_id)).starts_with("p1 "));
  const json answered = c.server.call("send_input", {{"processId", "p1"}, {"input", "it"}});
  CHECK(field(fields_of(answered), "stdout") == "got it\n");
  CHECK(field(fields_of(check(c.server, "p1", {{"grep", "got"}})), "stdoutFound") == "2:got it\n");
  const json uri = {{"uri", "dockbridge://process/p1/stdout"}};
  CHECK(field(c.server.request("resources/read", uri), "result", "contents", 0, "text") == "hello\ngot it\n");
  const json killed = control(c.server, "p1", "kill");
  CHECK(field(fields_of(killed), "processId") == long_id);
  CHECK(text_of(killed).find("p1") != std::string::npos);
  CHECK(short_id_in(text_of(c.server.execute("sleep 600", {{"background", true}}))) == "p2");
}

TEST_CASE("short ids: an unknown one is not found") {
  Connected c;
  c.server.execute("true");
  for (const char* id : {"p2", "p999999999"}) {
    const json error = error_of(check(c.server, id));
    CHECK(field(error, "code") == "no_such_process");
    CHECK(field(error, "message") == fmt::format("Process not found: {}", id));
  }
  for (const char* id : {"p0", "p01", "p-1", "p1000000000", "q1", "1"}) {
    CAPTURE(id);
    CHECK(field(error_of(check(c.server, id)), "code") == "bad_process_id");
  }
}

TEST_CASE("short ids: two servers with 50 concurrent starts use 100 distinct ids") {
  const Container container("dockbridge-test:slim", {"--init"});
  Server one({"-c", container.name()});
  Server two({"-c", container.name()});
  std::set<std::string> ids;
  for (Server* server : {&one, &two}) {
    server->initialize();
    ids.insert(start_sleep(*server));
  }
  std::vector<std::pair<Server*, int>> calls;
  for (int i = 1; i < 50; ++i) {
    for (Server* server : {&one, &two}) {
      calls.emplace_back(server, server->start_call("execute_command",
                                                    {{"command", "sleep 600"}, {"background", true}, {"timeout", 0}}));
    }
  }
  for (const auto& [server, call] : calls) {
    ids.insert(short_id_in(text_of(field(server->receive_answer(call, seconds(60)), "result"))));
  }
  CHECK(ids.size() == 100);
  CHECK(ids.contains("p1"));
  CHECK(ids.contains("p100"));
  // Each id means the same process for both servers.
  for (const std::string& id : ids) {
    CHECK(field(fields_of(check(one, id)), "processId") == field(fields_of(check(two, id)), "processId"));
  }
  const auto listed = lines_of(list(one));
  CHECK(listed.size() == 100);
}

TEST_CASE("short ids: they continue after restarts of server and container") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::string before;
  {
    Server server({"-c", container.name()});
    server.initialize();
    CHECK(start_sleep(server) == "p1");
    CHECK(start_sleep(server) == "p2");
    before = field(fields_of(check(server, "p2")), "processId");
  }
  Server server({"-c", container.name()});
  server.initialize();
  CHECK(field(fields_of(check(server, "p2")), "processId") == before);
  CHECK(start_sleep(server) == "p3");
  run_ok({"docker", "restart", "--time", "0", container.name()});
  CHECK(start_sleep(server) == "p4");
  CHECK(field(fields_of(check(server, "p2")), "status") == "lost");
  CHECK(field(fields_of(check(server, "p4")), "status") == "running");
  for (const int pid : container.pids_of(k_session)) {
    CHECK(run({"kill", "-9", std::to_string(pid)}).exit_code == 0);
  }
  CHECK(start_sleep(server) == "p5");
}

TEST_CASE("short ids: they continue after a restart that lost the state directory") {
  Connected c({"--init", "--tmpfs", "/var/lib/dockbridge", "--tmpfs", "/tmp"});
  CHECK(start_sleep(c.server) == "p1");
  CHECK(start_sleep(c.server) == "p2");
  run_ok({"docker", "restart", "--time", "0", c.container.name()});
  CHECK(start_sleep(c.server) == "p3");
  CHECK(field(check(c.server, "p2"), "isError") == true);
}

TEST_CASE("short ids: they continue after their index was deleted") {
  Connected c;
  CHECK(start_sleep(c.server) == "p1");
  CHECK(start_sleep(c.server) == "p2");
  (void)c.container.sh("find / -xdev -name 'numbers_*' -path '*dockbridge*' -delete");
  Server later(c.with_name({}));
  later.initialize();
  CHECK(start_sleep(later) == "p3");
}

TEST_CASE("short ids: the id of an expired process is not used again") {
  Connected c({"--init"}, "dockbridge-test:slim", {"--retention-count", "1"});
  for (int i = 0; i < 5; ++i) {
    c.server.execute("true");
  }
  eventually("the first expires", [&] {
    Server later(c.with_name({"--retention-count", "1"}));  // a new session deletes expired processes when it starts
    later.initialize();
    later.execute("true");
    const json result = check(later, "p1");
    return field(result, "isError") == true && field(error_of(result), "code") == "process_expired";
  });
  CHECK(field(error_of(check(c.server, "p1")), "message") == "Process expired: p1");
  const std::string next = start_sleep(c.server);
  CHECK(std::stoi(next.substr(1)) > 6);
  CHECK(field(fields_of(check(c.server, next)), "status") == "running");
}

TEST_CASE("ids: another owner's expired process is reported like an unknown one") {
  const Served served;
  const std::vector<std::string> options = {"-c", served.container.name(), "--retention-count", "1"};
  std::string id;
  eventually("a process of the local owner expires", [&] {
    Server local(options);  // a new session deletes expired processes when it starts
    local.initialize();
    const json result = local.execute("true");
    id = id.empty() ? field(fields_of(result), "processId").get<std::string>() : id;
    const json found = check(local, id);
    return field(found, "isError") == true && field(error_of(found), "code") == "process_expired";
  });
  std::string unknown = id;
  unknown.back() = unknown.back() == 'a' ? 'b' : 'a';
  const auto reply = [&](const std::string& process) {
    std::string text = text_of(served.call(k_bob, "check_process", {{"processId", process}}));
    return text.replace(text.find(process), process.size(), "ID");
  };
  CHECK(reply(id) == reply(unknown));
}

TEST_CASE("short ids: another owner's is reported exactly like an unknown one") {
  const Served served;
  const auto start = [&](const std::string& token) {
    return served.call(token, "execute_command", {{"command", "sleep 600"}, {"background", true}});
  };
  const auto look = [&](const std::string& token, const std::string& id) {
    return served.call(token, "check_process", {{"processId", id}});
  };
  const json alices = start(k_alice);
  CHECK(short_id_in(text_of(alices)) == "p1");
  CHECK(short_id_in(text_of(start(k_alice))) == "p2");
  const json bobs = start(k_bob);
  CHECK(short_id_in(text_of(bobs)) == "p1");
  CHECK(field(fields_of(look(k_bob, "p1")), "processId") == field(fields_of(bobs), "processId"));
  CHECK(field(fields_of(look(k_alice, "p1")), "processId") == field(fields_of(alices), "processId"));

  // Bob has no p2, and neither p3 exists.
  const auto without_id = [](std::string text, const std::string& id) {
    for (std::size_t at = text.find(id); at != std::string::npos; at = text.find(id)) {
      text.replace(at, id.size(), "ID");
    }
    return text;
  };
  CHECK(without_id(look(k_bob, "p2").dump(), "p2") == without_id(look(k_bob, "p3").dump(), "p3"));
  const std::string foreign = field(fields_of(alices), "processId");
  const std::string unknown = foreign.substr(0, foreign.rfind('_')) + "_none";
  CHECK(without_id(look(k_bob, foreign).dump(), foreign) == without_id(look(k_bob, unknown).dump(), unknown));
  CHECK(field(served.call(k_bob, "control_process", {{"processId", "p2"}, {"action", "kill"}}), "isError") == true);
  CHECK(field(fields_of(look(k_alice, "p2")), "status") == "running");
}

TEST_CASE("list: running processes first and all of them, then the last five finished") {
  Connected c;
  for (int i = 0; i < 8; ++i) {
    c.server.execute(fmt::format("exit {}", i));
  }
  CHECK(text_of(c.server.execute("sleep 600 & echo started")).find("p9") != std::string::npos);
  start_sleep(c.server);
  CHECK(field(c.server.execute("sleep 0.1; echo x; exit 3"), "isError") == false);
  const std::string text = list(c.server);
  CAPTURE(text);
  const auto lines = lines_of(text);
  REQUIRE(lines.size() >= 7);
  CHECK(std::regex_match(lines[0], std::regex("p10 running [0-9.]+ s, quiet [0-9.]+ s: sleep 600")));
  CHECK(std::regex_match(lines[1], std::regex("p9 running \\(command exited 0\\): sleep 600 & echo started")));
  CHECK(std::regex_match(lines[2], std::regex("p11 exit 3 after 0\\.[0-9] s: sleep 0\\.1; echo x; exit 3")));
  CHECK(lines[3].starts_with("p8 exit 7 after "));
  CHECK(lines[6].starts_with("p5 exit 4 after "));
  CHECK(text.find("p4 ") == std::string::npos);
}
