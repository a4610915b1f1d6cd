#include <doctest/doctest.h>

#include <csignal>

#include "support/field.hpp"
#include "support/full.hpp"
#include "support/program.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr long k_small_kib = 64L * 1024;

struct Offline : Server {
  explicit Offline(std::vector<std::string> more = {})
      : Server([&] {
          more.insert(more.end(), {"--docker-host", "unix:///nonexistent/docker.sock"});
          return more;
        }()) {}

  void send_megabytes(int count) {
    const std::string megabyte(1024UL * 1024, 'x');
    for (int i = 0; i < count; ++i) {
      send_raw(megabyte);
    }
  }
  [[nodiscard]] long kib_of(const std::string& field) const {
    const std::string status = run_ok({"cat", "/proc/" + std::to_string(pid()) + "/status"});
    return std::stol(status.substr(status.find(field) + field.size()));
  }
  /// Checks that the server still answers.
  void must_still_serve() { CHECK(field(request("ping"), "result") == json::object()); }
};

}  // namespace

TEST_CASE("bad input: text that is not JSON is a parse error with a null id") {
  Offline server;
  for (const char* text : {"{", "nonsense", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": ", "\"\\ud800", "[1,2"}) {
    server.send_raw(std::string(text) + "\n");
    const json answer = server.receive();
    CHECK(field(answer, "error", "code") == -32700);
    CHECK_FALSE(answer.contains("id"));
  }
  server.must_still_serve();
}

TEST_CASE("bad input: NUL bytes and invalid UTF-8 are parse errors") {
  Offline server;
  server.send_raw(std::string("{\"jsonrpc\":\"2.0\",\0\"id\":1}\n", 26));
  CHECK(field(server.receive(), "error", "code") == -32700);
  server.send_raw("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}\n");
  CHECK(field(server.receive(), "error", "code") == -32700);
  server.must_still_serve();
}

TEST_CASE("bad input: deeply nested JSON is rejected without recursion") {
  Offline server;
  server.send_raw(std::string(100'000, '[') + "\n");
  CHECK(field(server.receive(), "error", "code") == -32600);
  std::string nested = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":)";
  for (int i = 0; i < 1000; ++i) {
    nested += "{\"a\":";
  }
  server.send_raw(nested + "\n");
  CHECK(field(server.receive(), "error", "code") == -32600);
  server.must_still_serve();
}

TEST_CASE("bad input: a line over the limit is rejected and not kept in memory") {
  Offline server({"--max-message", "16"});
  server.send_raw("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
  server.send_megabytes(100);
  server.send_raw("\"}\n");
  const json answer = server.receive();
  CHECK(field(answer, "error", "code") == -32600);
  CHECK(field(answer, "error", "message").get<std::string>().find("Message exceeds") != std::string::npos);
  CHECK((!k_memory_is_meaningful || server.kib_of("VmHWM:") < k_small_kib));
  server.must_still_serve();
}

TEST_CASE("bad input: an invalid line of 100 MB leaves no memory behind") {
  Offline server;
  for (const auto& [before, after, code] :
       {std::tuple("", "\n", -32700), std::tuple("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"", "\"}\n", -32601),
        std::tuple("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"file_write\","
                   "\"arguments\":{\"content\":\"",
                   "\"}}}\n", 0)}) {
    CAPTURE(code);
    server.send_raw(before);
    server.send_megabytes(100);
    server.send_raw(after);
    const json answer = server.receive(seconds(60));
    CHECK(answer.dump().size() < 1000);
    if (code != 0) {
      CHECK(field(answer, "error", "code") == code);
    } else {
      CHECK(field(answer, "result", "isError") == true);
    }
    eventually("the memory is released",
               [&] { return !k_memory_is_meaningful || server.kib_of("VmRSS:") < k_small_kib; });
    server.must_still_serve();
  }
  server.send_megabytes(161);
  server.send_raw("\n");
  CHECK(field(server.receive(seconds(60)), "error", "code") == -32600);
  server.must_still_serve();
}

TEST_CASE("bad input: JSON that is not JSON-RPC is an invalid request") {
  Offline server;
  for (const char* text :
       {"1", "null", "\"x\"", "[]", "{}", R"({"id":1,"method":"ping"})", R"({"jsonrpc":"1.0","id":1,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","id":1,"method":5})"}) {
    server.send_raw(std::string(text) + "\n");
    CHECK(field(server.receive(), "error", "code") == -32600);
  }
  server.send_raw("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":[1]}\n");
  const json answer = server.receive();
  CHECK(field(answer, "error", "code") == -32602);
  CHECK(field(answer, "id") == 7);
  server.must_still_serve();
}

TEST_CASE("ids: returned exactly as they were sent") {
  Offline server;
  for (const json& id :
       {json(0), json(-1), json(9007199254740993), json(18446744073709551615ULL), json(""), json("ä\n")}) {
    server.send({{"jsonrpc", "2.0"}, {"id", id}, {"method", "ping"}});
    const json answer = server.receive();
    CHECK(field(answer, "id") == id);
    CHECK(field(answer, "id").type_name() == id.type_name());
  }
}

TEST_CASE("ids: null, fractions, objects and more than 64 bits are rejected") {
  Offline server;
  for (const char* id : {"null", "1.5", "{}", "[1]", "true", "18446744073709551616", "1e400"}) {
    server.send_raw(std::string(R"({"jsonrpc":"2.0","method":"ping","id":)") + id + "}\n");
    const json answer = server.receive();
    CHECK_FALSE(answer.contains("id"));
    CHECK(field(answer, "error", "code").get<int>() <= -32600);
  }
  server.must_still_serve();
}

TEST_CASE("bad input: unknown methods are rejected, notifications ignored") {
  Offline server;
  const json error = field(server.request("tools/destroy"), "error");
  CHECK(field(error, "code") == -32601);
  CHECK(field(error, "message").get<std::string>().find("tools/destroy") != std::string::npos);
  server.send({{"jsonrpc", "2.0"}, {"method", "notifications/whatever"}, {"params", {{"a", 1}}}});
  server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 12345}}}});
  server.send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}});
  server.send({{"jsonrpc", "2.0"}, {"id", 99}, {"result", json::object()}});
  server.must_still_serve();
}

TEST_CASE("bad input: empty lines are ignored") {
  Offline server;
  server.send_raw("\n\r\n  \n");
  server.must_still_serve();
}

TEST_CASE("tools/call: an unusable name is invalid") {
  Offline server;
  CHECK(field(server.request("tools/call"), "error", "code") == -32602);
  CHECK(field(server.request("tools/call", {{"name", 5}}), "error", "code") == -32602);
  CHECK(field(server.request("tools/call", {{"name", "nope"}}), "error", "code") == -32602);
  CHECK(field(server.request("tools/call", {{"name", "check_process"}, {"arguments", "x"}}), "error", "code") ==
        -32602);
}

TEST_CASE("tools/call: a bad argument is a result that names it") {
  Offline server;
  const auto complaint = [&](const std::string& tool, const json& arguments) {
    const json result = field(server.request("tools/call", {{"name", tool}, {"arguments", arguments}}), "result");
    CHECK(field(result, "isError") == true);
    CHECK(field(result, "structuredContent", "error", "code") == "bad_arguments");
    return field(result, "content", 0, "text").get<std::string>();
  };
  const auto names = [](const std::string& text, const char* argument) {
    CAPTURE(text);
    CHECK(text.find(argument) != std::string::npos);
    CHECK(text.find('\n') != std::string::npos);  // a next step follows
  };
  names(complaint("execute_command", json::object()), "command");
  names(complaint("execute_command", {{"command", "true"}}), "rationale");
  names(complaint("execute_command", {{"command", 5}, {"rationale", "x"}}), "command");
  names(complaint("execute_command", {{"command", "  \n"}, {"rationale", "x"}}), "command");
  names(complaint("execute_command", {{"command", std::string("a\0b", 3)}, {"rationale", "x"}}), "command");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"cwd", 1}}), "cwd");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"env", {{"A=B", "c"}}}}), "env");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"env", {{"", "c"}}}}), "env");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"env", {{"A", 1}}}}), "env");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"env", "A=B"}}), "env");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"maxWaitTime", -1}}), "maxWaitTime");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"maxWaitTime", "20 s"}}), "maxWaitTime");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"timeot", 5}}), "timeout");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"background", "yes"}}), "background");
  names(complaint("execute_command", {{"command", "a"}, {"rationale", "x"}, {"maxOutput", 1.5}}), "maxOutput");
  names(complaint("check_process", {{"rationale", "x"}, {"since", "12:"}}), "since");
  names(complaint("check_process", {{"rationale", "x"}, {"tail", 0}}), "tail");
  names(complaint("send_input", {{"rationale", "x"}, {"input", "a"}}), "processId");
}

TEST_CASE("engine: no engine and unusable addresses are clear errors") {
  const auto error_of = [](const std::string& host) {
    Server server({"--docker-host", host});
    const json result = server.execute("true");
    CHECK(field(result, "isError") == true);
    server.request("ping");
    return field(result, "structuredContent", "error");
  };
  CHECK(field(error_of("unix:///nonexistent/docker.sock"), "code") == "no_engine");
  CHECK(field(error_of("tcp://127.0.0.1:1"), "code") == "no_engine");
  CHECK(field(error_of("ssh://someone@host"), "code") == "unsupported_docker_host");
  CHECK(field(error_of("gopher://x"), "code") == "bad_docker_host");
  for (const char* host : {"unix:///nonexistent/docker.sock", "ssh://someone@host", "gopher://x"}) {
    CHECK_FALSE(field(error_of(host), "nextStep").get<std::string>().empty());
  }
}

TEST_CASE("engine: a missing docker command is a clear error") {
  Server server({"--via", "exec", "--docker-command", "no-such-docker"});
  const json result = server.execute("true");
  CHECK(field(result, "isError") == true);
  CHECK(field(result, "structuredContent", "error", "code") == "no_docker_command");
}

TEST_CASE("options: an invalid value is reported with source and valid values") {
  const auto complaint = [](const std::vector<std::string>& arguments, const std::map<std::string, std::string>& env) {
    std::vector<std::string> argv = {program_path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const Finished finished = run(argv, env);
    CHECK(finished.exit_code == 2);
    CHECK(finished.out.empty());
    return finished.err;
  };
  const std::string flag = complaint({"--via", "pigeon"}, {});
  CHECK(flag.find("'pigeon'") != std::string::npos);
  CHECK(flag.find("--via") != std::string::npos);
  CHECK(flag.find("engine, exec") != std::string::npos);
  const std::string variable = complaint({}, {{"DOCKBRIDGE_MAX_WAIT", "soon"}});
  CHECK(variable.find("'soon'") != std::string::npos);
  CHECK(variable.find("DOCKBRIDGE_MAX_WAIT") != std::string::npos);
  CHECK(complaint({"--nonsense"}, {}).find("--nonsense") != std::string::npos);
  CHECK(complaint({"--workdir", "relative"}, {}).find("absolute") != std::string::npos);
  CHECK(complaint({"--config", "/nonexistent.json"}, {}).find("/nonexistent.json") != std::string::npos);
}

TEST_CASE("options: --help and --version need no engine") {
  const std::map<std::string, std::string> offline = {{"DOCKER_HOST", "unix:///nonexistent"}};
  const Finished help = run({program_path(), "--help"}, offline);
  CHECK(help.exit_code == 0);
  for (const char* word : {"--container-name", "--via", "call", "doctor", "DOCKBRIDGE_"}) {
    CHECK(help.out.find(word) != std::string::npos);
  }
  const Finished version = run({program_path(), "--version"}, offline);
  CHECK(version.exit_code == 0);
  CHECK(version.out.starts_with("dockbridge 0."));
}
