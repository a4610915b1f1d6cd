#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <thread>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

json wait_for_end(Server& server, const std::string& process) {
  return server.call("check_process",
                     {{"processId", process}, {"timeout", 40}, {"since", "0:0"}, {"maxOutput", 400000}}, seconds(60));
}

std::string lines_up_to(int count) {
  std::string expected;
  for (int i = 1; i <= count; ++i) {
    expected += std::to_string(i) + "\n";
  }
  return expected;
}

}  // namespace

TEST_CASE("process: survives kill -9 of the server with id, output and exit code") {
  const Container container("dockbridge-test:slim", {"--init"});
  std::string id;
  {
    Server first({"-c", container.name()});
    first.initialize();
    id = field(
        fields_of(first.execute("for i in $(seq 2000); do echo $i; [ $((i % 100)) = 0 ] && sleep 0.1; done; exit 9",
                                {{"background", true}})),
        "processId");
    first.signal(SIGKILL);
    first.wait_for_exit();
  }
  Server second({"-c", container.name()});
  second.initialize();
  const json ended = wait_for_end(second, id);
  CHECK(field(fields_of(ended), "stdout") == lines_up_to(2000));
  CHECK(field(fields_of(ended), "exitCode") == 9);
}

TEST_CASE("session: kill -9 during output loses nothing, and the call continues") {
  bool kill_session = true;
  SUBCASE("the session") {}
  SUBCASE("the stream") {
    kill_session = false;
  }
  Connected c({"--init"}, "dockbridge-test:slim", {"--no-direct-line", "--via", kill_session ? "engine" : "exec"});
  c.server.execute("true");
  const int id = c.server.start_call(
      "execute_command",
      {{"command", "for i in $(seq 3000); do echo $i; [ $((i % 100)) = 0 ] && sleep 0.1; done; exit 3"},
       {"maxOutput", 400000}});
  eventually("the command runs", [&] { return c.container.pids_of("seq 3000").size() == 1; });
  const auto sessions = c.container.pids_of(k_session);
  REQUIRE(sessions.size() == 1);
  ::kill(kill_session ? sessions.front() : std::stoi(run_ok({"pgrep", "-P", std::to_string(c.server.pid())})), SIGKILL);
  const json result = field(c.server.receive_answer(id), "result");
  CHECK(field(fields_of(result), "stdout") == lines_up_to(3000));
  CHECK(field(fields_of(result), "exitCode") == 3);
}

TEST_CASE("process: keeps running when the client closes its end") {
  const Container container("dockbridge-test:slim", {"--init"});
  {
    Server server({"-c", container.name()});
    server.initialize();
    server.execute("true");
    server.start_call("execute_command", {{"command", "sleep 8642"}});
    eventually("the command runs", [&] { return !container.pids_of("sleep 8642").empty(); });
    server.close_input();
    CHECK(server.wait_for_exit() == 0);
  }
  CHECK_FALSE(container.pids_of("sleep 8642").empty());
}

TEST_CASE("keeper: a killed keeper means an unknown exit code, never 0") {
  Connected c;
  const std::string id = field(fields_of(c.server.execute("echo kept; sleep 60", {{"background", true}})), "processId");
  eventually("the output is stored", [&] {
    return field(fields_of(c.server.call("check_process", {{"processId", id}, {"all", true}})), "stdout") == "kept\n";
  });
  const auto keepers = c.container.pids_of(k_keeper);
  REQUIRE(keepers.size() == 1);
  ::kill(keepers.front(), SIGKILL);
  eventually("the process is known to be lost", [&] {
    return field(fields_of(c.server.call("check_process", {{"processId", id}})), "status") == "lost";
  });
  const json lost = c.server.call("check_process", {{"processId", id}, {"all", true}});
  CHECK_FALSE(fields_of(lost).contains("exitCode"));
  CHECK(field(fields_of(lost), "stdout") == "kept\n");
  CHECK(text_of(lost).find("unknown") != std::string::npos);
}

TEST_CASE("keeper: a reused keeper carries nothing over to the next command") {
  Connected c;
  CHECK(field(c.server.execute("echo first; echo oops >&2; umask 077; cd /; trap '' TERM; exit 7"), "structuredContent",
              "exitCode") == 7);
  const auto keepers = c.container.pids_of(k_keeper);
  REQUIRE(keepers.size() == 1);
  const json second = field(c.server.execute("umask; pwd; trap; cat", {{"stdin", "in"}}), "structuredContent");
  CHECK(field(second, "exitCode") == 0);
  CHECK(field(second, "stdout") == "0022\n/app\nin");
  CHECK(field(second, "stderr") == "");
  CHECK(c.container.pids_of(k_keeper) == keepers);
  // A command that cannot be started does not end the keeper.
  CHECK(field(error_of(c.server.execute("true", {{"cwd", "/nope"}})), "code") == "bad_cwd");
  CHECK(field(c.server.execute("true"), "structuredContent", "exitCode") == 0);
  CHECK(c.container.pids_of(k_keeper) == keepers);
}

TEST_CASE("keeper: an idle keeper that was killed is replaced") {
  Connected c;
  c.server.execute("true");
  for (const pid_t keeper : c.container.pids_of(k_keeper)) {
    ::kill(keeper, SIGKILL);
  }
  eventually("the keeper is gone", [&] { return c.container.pids_of(k_keeper).empty(); });
  CHECK(field(c.server.execute("echo again"), "structuredContent", "stdout") == "again\n");
}

TEST_CASE("keeper: a large environment arrives complete") {
  Connected c;
  const std::string value(100'000, 'x');
  const json result = c.server.execute("echo ${#A} ${#B}", {{"env", {{"A", value}, {"B", value}}}});
  CHECK(field(result, "structuredContent", "stdout") == "100000 100000\n");
}

TEST_CASE("commands: leave no zombies, with init and with sleep as PID 1") {
  for (const bool init : {true, false}) {
    CAPTURE(init);
    Connected c(init ? std::vector<std::string>{"--init"} : std::vector<std::string>{});
    for (int i = 0; i < 20; ++i) {
      c.server.execute("(sleep 0.01 &) ; bash -c 'true & disown'; true");
      c.server.execute("true", {{"cwd", "/nope"}});
    }
    eventually("only keepers without a process are left", [&] { return c.container.pids_of(k_keeper).size() <= 4; });
    CHECK(c.container.zombies() == 0);
    c.server.signal(SIGKILL);
    c.server.wait_for_exit();
    eventually("the session goes with its stream, and its keepers with it",
               [&] { return c.container.pids_of(k_session).empty() && c.container.pids_of(k_keeper).empty(); });
    CHECK(c.container.zombies() == 0);
  }
}

TEST_CASE("channel: without a container and an image, the error names the next step") {
  Server server({"-c", "dockbridge-no-such", "--image", "dockbridge-no-such-image"});
  const json error = error_of(server.execute("true"));
  CHECK(field(error, "code") == "no_such_container");
  CHECK(field(error, "nextStep").get<std::string>().find("run.sh") != std::string::npos);
  Server forbidden({"-c", "dockbridge-no-such", "--image", "dockbridge-test:slim", "--no-create"});
  CHECK(field(error_of(forbidden.execute("true")), "code") == "no_such_container");
  Server by_command({"-c", "dockbridge-no-such", "--image", "dockbridge-no-such-image", "--via", "exec"});
  CHECK(field(error_of(by_command.execute("true")), "code") == "no_such_container");
}

TEST_CASE("channel: a tool call creates a missing container with hardening") {
  for (const char* via : {"engine", "exec"}) {
    CAPTURE(via);
    const std::string name = fmt::format("dockbridge-test-created-{}-{}", ::getpid(), via);
    const auto exists = [&] { return run({"docker", "inspect", name}).exit_code == 0; };
    struct Remove {
      std::string name;
      ~Remove() { run({"docker", "rm", "--force", name}); }
    } const remove{name};
    Server server({"-c", name, "--image", "dockbridge-test:slim", "--via", via});
    server.initialize();
    server.request("tools/list");
    CHECK_FALSE(exists());
    CHECK(field(fields_of(server.execute("pwd")), "stdout") == "/app\n");
    const json host = json::parse(run_ok({"docker", "inspect", "--format", "{{json .HostConfig}}", name}));
    CHECK(field(host, "Init") == true);
    CHECK(field(host, "CapDrop") == json::array({"ALL"}));
    CHECK(field(host, "SecurityOpt") == json::array({"no-new-privileges:true"}));
    CHECK(field(host, "PidsLimit") == 4096);
    CHECK(field(host, "Memory").get<std::int64_t>() > 0);
  }
}

TEST_CASE("channel: a container that is being removed is created again afterwards") {
  const std::string name = fmt::format("dockbridge-test-removed-{}", ::getpid());
  const auto remove = [&] { run({"docker", "rm", "--force", name}); };
  const auto status = [&] { return run({"docker", "inspect", "--format", "{{.State.Status}}", name}).out; };
  run_ok({"docker", "run", "--detach", "--init", "--name", name, "dockbridge-test:slim", "sleep", "infinity"});
  // Many files, so the removal takes about a second.
  run_ok({"docker", "exec", name, "sh", "-c", "mkdir /many && cd /many && seq 60000 | xargs touch"});
  {
    const std::jthread removal(remove);
    eventually("the container is being removed", [&] { return status() == "removing\n"; });
    Server server({"-c", name, "--image", "dockbridge-test:slim"});
    const json result = server.execute("test -e /many || echo new");
    CAPTURE(result.dump());
    CHECK(field(fields_of(result), "stdout") == "new\n");
  }
  remove();
}

TEST_CASE("channel: a stopped container is started, unless that is forbidden") {
  const Container container("dockbridge-test:slim", {"--init"});
  run_ok({"docker", "stop", "--time", "1", container.name()});
  Server forbidden({"-c", container.name(), "--no-start"});
  const json error = error_of(forbidden.execute("true"));
  CHECK(field(error, "code") == "container_stopped");
  CHECK(field(error, "nextStep") == "docker start " + container.name());
  for (const char* via : {"engine", "exec"}) {
    run_ok({"docker", "stop", "--time", "1", container.name()});
    Server server({"-c", container.name(), "--via", via});
    CHECK(field(fields_of(server.execute("echo up")), "stdout") == "up\n");
  }
}

TEST_CASE("channel: a paused container is reported; calls work after unpause") {
  for (const char* via : {"engine", "exec"}) {
    CAPTURE(via);
    Connected c({"--init"}, "dockbridge-test:slim", {"--via", via});
    c.server.execute("true");
    run_ok({"docker", "pause", c.container.name()});
    const json error = error_of(c.server.execute("true"));
    CHECK(field(error, "code") == "container_paused");
    CHECK(field(error, "nextStep")
              .get<std::string>()
              .starts_with("docker unpause " + c.container.name() + ". check_process "));
    Server fresh({"-c", c.container.name(), "--via", via});
    CHECK(field(error_of(fresh.execute("true")), "code") == "container_paused");
    run_ok({"docker", "unpause", c.container.name()});
    CHECK(field(fields_of(c.server.execute("echo again")), "stdout") == "again\n");
    CHECK(field(fields_of(fresh.execute("echo again")), "stdout") == "again\n");
  }
}

TEST_CASE("channel: a container killed during a call ends it; the next call starts it") {
  for (const char* via : {"engine", "exec"}) {
    CAPTURE(via);
    Connected c({"--init"}, "dockbridge-test:slim", {"--via", via});
    const std::string old = field(fields_of(c.server.execute("echo kept")), "processId");
    const int id = c.server.start_call("execute_command", {{"command", "sleep 9753"}});
    eventually("the command runs", [&] { return !c.container.pids_of("sleep 9753").empty(); });
    run_ok({"docker", "kill", c.container.name()});
    const json error = error_of(field(c.server.receive_answer(id), "result"));
    CHECK(field(error, "code") == "container_stopped");
    CHECK(field(fields_of(c.server.execute("echo up")), "stdout") == "up\n");
    // The output of a process that had finished is still on the container's disk.
    CHECK(field(fields_of(c.server.call("check_process", {{"processId", old}, {"all", true}})), "stdout") == "kept\n");
  }
}

TEST_CASE("channel: a restart during a call ends the call with the reason") {
  Connected c;
  c.server.execute("true");
  const int call = c.server.start_call("execute_command", {{"command", "echo before; sleep 9751"}});
  eventually("the command runs", [&] { return !c.container.pids_of("sleep 9751").empty(); });
  run_ok({"docker", "restart", "--time", "0", c.container.name()});
  const json result = field(c.server.receive_answer(call), "result");
  CAPTURE(result.dump());
  const std::string why = field(error_of(result), "code");
  CHECK((why == "container_stopped" || why == "container_replaced"));
  const json listed = field(fields_of(c.server.call("check_process", json::object())), "processes");
  REQUIRE(listed.size() == 2);
  CHECK(field(listed, 0, "status") == "lost");
  CHECK(field(listed, 0, "cause") == "container");
  CHECK(field(fields_of(check(c.server, field(listed, 0, "processId"))), "stdout") == "before\n");
}

TEST_CASE("channel: a replaced container is detected; old ids are gone") {
  const std::string name = fmt::format("dockbridge-test-replaced-{}", ::getpid());
  struct Remove {
    std::string name;
    ~Remove() { run({"docker", "rm", "--force", name}); }
  } const remove{name};
  const auto create = [&] {
    run_ok({"docker", "run", "-d", "--init", "--name", name, "dockbridge-test:slim", "sleep", "infinity"});
  };
  create();
  Server server({"-c", name});
  const std::string old = field(fields_of(server.execute("sleep 60", {{"background", true}})), "processId");
  run_ok({"docker", "rm", "--force", name});
  create();
  eventually("the loss is detected", [&] { return field(server.execute("true"), "isError") == false; });
  CHECK(field(error_of(server.call("check_process", {{"processId", old}})), "code") == "process_gone");
}

#ifndef __SANITIZE_ADDRESS__  // the sanitized agent needs the glibc of its image
TEST_CASE("image: an image with only a static sh works") {
  Connected c({"--init"}, "dockbridge-test:sh-only");
  CHECK(field(fields_of(c.server.execute("echo $0 | grep -c sh; exit 6")), "exitCode") == 6);
  CHECK(field(fields_of(c.server.execute("cat <<E\nhi\nE")), "stdout") == "hi\n");
}

TEST_CASE("image: without a shell, only plain programs run") {
  const Container container("dockbridge-test:sh-only", {"--init"});
  Server server({"-c", container.name()});
  server.execute("true");
  // The agent needs no shell, so the shell is removed before a new connection.
  (void)container.sh("cp /bin/busybox /busybox-only && rm -f /bin/sh /bin/ash /bin/bash");
  Server fresh({"-c", container.name()});
  CHECK(field(fields_of(fresh.execute("/busybox-only echo 'a b'  c")), "stdout") == "a b c\n");
  const json error = error_of(fresh.execute("/busybox-only echo a | cat"));
  CHECK(field(error, "code") == "no_shell");
}
#endif

TEST_CASE("agent: works on a read-only root with a volume, else names the problem") {
  Connected c({"--init", "--read-only", "--tmpfs", "/tmp", "--volume", "/app"});
  CHECK(field(fields_of(c.server.execute("echo works; touch /etc/x")), "stdout") == "works\n");
  const TemporaryDirectory empty;
  Connected bare({"--init", "--read-only", "--volume", empty.path().string() + ":/app:ro"});
  const json error = error_of(bare.server.execute("true"));
  CHECK(field(error, "code") == "agent_not_placed");
  CHECK(field(error, "message").get<std::string>().find("read-only") != std::string::npos);
}

TEST_CASE("image: a container of an unprivileged user works") {
  Connected c({"--init", "--user", "1234:1234"});
  CHECK(field(fields_of(c.server.execute("id -u")), "stdout") == "1234\n");
  CHECK(field(error_of(c.server.execute("id -u", {{"user", "root"}})), "code") == "cannot_switch_user");
}

TEST_CASE("channel: no permission on the engine's socket has a next step") {
  const Container container("dockbridge-test:slim", {"--init"});
  Server server({"-c", container.name(), "--docker-host", "unix:///var/run/docker.sock"}, {},
                {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"});
  const json error = error_of(server.execute("true"));
  CHECK(field(error, "code") == "no_permission");
  CHECK(field(error, "nextStep").get<std::string>().find("usermod") != std::string::npos);
}

TEST_CASE("channel: an engine that never answers is reported as hung") {
  const std::string path = fmt::format("/tmp/dockbridge-test-hung-{}.sock", ::getpid());
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 8) == 0);
  Server server({"--docker-host", "unix://" + path});
  server.initialize();
  const int id = server.start_call("execute_command", {{"command", "true"}});
  CHECK(field(server.request("ping"), "result") == json::object());
  const json error = error_of(field(server.receive_answer(id, seconds(60)), "result"));
  ::unlink(path.c_str());
  CHECK(field(error, "code") == "engine_hung");
}

TEST_CASE("commands: a gigabyte of output is counted exactly and shown shortened") {
  Connected c;
  const json result = c.server.execute("head -c 1073741824 /dev/zero | tr '\\0' x; echo; echo end");
  CHECK(field(fields_of(result), "stdoutBytes") == 1073741824 + 5);
  CHECK(result.dump().size() < 200'000);
  CHECK(field(fields_of(result), "stdout").get<std::string>().ends_with("x\nend\n"));
  CHECK(text_of(result).find("not stored]") != std::string::npos);
}

TEST_CASE("commands: rejected at the pids limit, and accepted again below it") {
  Connected c({"--init", "--pids-limit", "30"});
  c.server.execute("true");
  const std::string hog = field(
      fields_of(c.server.execute("for i in $(seq 40); do sleep 40 & done; wait", {{"background", true}})), "processId");
  eventually("the limit is reached", [&] {
    const json result = c.server.execute("true");
    return field(result, "isError") == true && field(fields_of(result), "error", "code") == "cannot_fork";
  });
  for (const int pid : c.container.pids_of("sleep 40")) {
    ::kill(pid, SIGKILL);
  }
  eventually("calls are accepted again", [&] { return field(c.server.execute("true"), "isError") == false; });
}
