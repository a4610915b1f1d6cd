#include <doctest/doctest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/kernel.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A directory of the host, and a container that has it at /app.
struct Sharing {
  TemporaryDirectory workspace;

  Container container;

  explicit Sharing(const std::vector<std::string>& options = {})
      : container("dockbridge-test:slim", with_workspace(options)) {}

 private:
  [[nodiscard]] std::vector<std::string> with_workspace(std::vector<std::string> options) const {
    std::filesystem::permissions(workspace.path(), std::filesystem::perms::all);
    options.insert(options.end(), {"--init", "--volume", workspace.path().string() + ":/app"});
    return options;
  }
};

bool is_direct(Server& server) {
  const std::string log = server.log();
  const bool direct = log.find("way=direct") != std::string::npos;
  CHECK(direct != (log.find("way=\"through the engine: ") != std::string::npos));
  return direct;
}

/// Command prefix that runs a program as a user whose only privilege is access to the engine.
std::vector<std::string> as_nobody() {
  struct stat socket {};
  REQUIRE(::stat("/var/run/docker.sock", &socket) == 0);
  return {"setpriv", "--reuid", "65534", "--regid", std::to_string(socket.st_gid), "--clear-groups"};
}

std::string printed_by(Server& server, const std::string& command) {
  return field(fields_of(server.execute(command)), "stdout").get<std::string>();
}

}  // namespace

TEST_CASE("direct line: uses an unlinked socket in a bind-mounted /app") {
  std::vector<std::string> options;
  std::string via = "engine";
  SUBCASE("by the Engine API") {}
  SUBCASE("by the docker command") {
    via = "exec";
  }
  SUBCASE("as a user without privileges") {
    options = {"--user", "1234:1234"};
  }
  SUBCASE("without capabilities") {
    options = {"--cap-drop", "ALL"};
  }
  SUBCASE("with the process ids of the host") {
    options = {"--pid", "host"};
  }
  SUBCASE("without a network") {
    options = {"--network", "none"};
  }
  const Sharing sharing(options);
  Server server({"-c", sharing.container.name(), "--via", via});
  CHECK(printed_by(server, "ls -A /app; echo listed") == "listed\n");
  CHECK(is_direct(server) == has_direct_lines());
  CHECK(std::filesystem::is_empty(sharing.workspace.path()));
}

TEST_CASE("doctor: reports whether calls use the direct line") {
  const Sharing sharing;
  const auto told = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {program_path(), "-c", sharing.container.name(), "doctor"};
    command.insert(command.end(), more.begin(), more.end());
    return run_ok(command);
  };
  CHECK(told({}).find(has_direct_lines() ? "calls use the direct line" : "Linux 6.16") != std::string::npos);
  CHECK(told({"--no-direct-line"}).find("pass through the engine") != std::string::npos);
}

TEST_CASE("direct line: works in a read-only workspace") {
  const TemporaryDirectory workspace;
  Connected c({"--init", "--volume", workspace.path().string() + ":/app:ro"});
  CHECK(printed_by(c.server, "touch /app/x || echo refused") == "refused\n");
  CHECK(is_direct(c.server) == has_direct_lines());
}

TEST_CASE("direct line: without it, the log states why calls use the engine") {
  const auto check = [](const Container& container, const std::vector<std::string>& more, const std::string& reason) {
    std::vector<std::string> arguments = {"-c", container.name()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Server server(arguments);
    CHECK(printed_by(server, "echo works") == "works\n");
    CHECK_FALSE(is_direct(server));
    CHECK(server.log().find(reason) != std::string::npos);
  };
  SUBCASE("nothing is shared") {
    check(Container("dockbridge-test:slim", {"--init", "--tmpfs", "/app"}), {}, "no shared directory is used");
  }
  SUBCASE("it is not wanted") {
    check(Sharing().container, {"--no-direct-line"}, "no shared directory is used");
  }
}

TEST_CASE("direct line: a directory that the server cannot write to is no obstacle") {
  const Sharing sharing;
  std::filesystem::permissions(sharing.workspace.path(), std::filesystem::perms::owner_all);
  Server server({"-c", sharing.container.name()}, {}, as_nobody());
  CHECK(printed_by(server, "echo works") == "works\n");
  CHECK_FALSE(is_direct(server));
  CHECK(server.log().find(has_direct_lines() ? "Permission denied" : "Linux 6.16") != std::string::npos);
}

TEST_CASE("direct line: a server of another user has its own directory") {
  const Sharing sharing;
  run_ok({"chown", "65534", sharing.workspace.path().string()});
  std::filesystem::permissions(sharing.workspace.path(), std::filesystem::perms::owner_all);
  Server server({"-c", sharing.container.name()}, {}, as_nobody());
  CHECK(printed_by(server, "echo works") == "works\n");
  CHECK(is_direct(server) == has_direct_lines());
}

TEST_CASE("direct line: the session outlives the engine's stream") {
  const Sharing sharing;
  Server server({"-c", sharing.container.name(), "--via", "exec"});
  CHECK(printed_by(server, "echo before") == "before\n");
  const auto sessions = sharing.container.pids_of(k_session);
  ::kill(std::stoi(run_ok({"pgrep", "-P", std::to_string(server.pid())})), SIGKILL);
  CHECK(printed_by(server, "echo after") == "after\n");
  CHECK((sharing.container.pids_of(k_session) == sessions) == has_direct_lines());
  CHECK((server.log().find("reconnected") == std::string::npos) == has_direct_lines());
}

TEST_CASE("direct line: a session ends with its server and can be replaced") {
  const Sharing sharing;
  const Container& container = sharing.container;
  Server server({"-c", container.name()});
  CHECK(printed_by(server, "echo first") == "first\n");
  const auto sessions = container.pids_of(k_session);
  REQUIRE(sessions.size() == 1);
  ::kill(sessions.front(), SIGKILL);
  CHECK(printed_by(server, "echo second") == "second\n");
  CHECK(server.log().find("reconnected") != std::string::npos);
  CHECK(is_direct(server) == has_direct_lines());
  server.signal(SIGKILL);
  server.wait_for_exit();
  eventually("the session has ended", [&] { return container.pids_of(k_session).empty(); });
}

TEST_CASE("direct line: a planted socket receives no data") {
  const Sharing sharing;
  const Container sibling("dockbridge-test:slim", {"--init", "--volume", sharing.workspace.path().string() + ":/app"});
  bool from_within = true;
  SUBCASE("in the container") {}
  SUBCASE("in another that has the directory too") {
    from_within = false;
  }
  const Container& container = from_within ? sharing.container : sibling;
  // As root, in a loop: moves each new socket away, listens in its place, and stores all data that it receives.
  run_ok({"docker", "exec", "--detach", container.name(), "python3", "-c", R"(
import os, socket, threading
def receive(listener):
    while True:
        peer, _ = listener.accept()
        words = peer.recv(1000)
        if words:
            open('/received', 'ab').write(words)
open('/ready', 'w').close()
while True:
    for name in os.listdir('/app'):
        if name.startswith('.dockbridge-') and name.endswith('.sock'):
            try:
                os.rename('/app/' + name, '/app/taken')
                listener = socket.socket(socket.AF_UNIX)
                listener.bind('/app/' + name)
                os.chmod('/app/' + name, 0o666)
                listener.listen(8)
                threading.Thread(target=receive, args=[listener], daemon=True).start()
                open('/replaced', 'a').write('x')
            except OSError:
                pass
)"});
  eventually("the attacker is running", [&] { return container.sh("ls /").find("ready") != std::string::npos; });
  int servers = 0;
  while (container.sh("cat /replaced 2>/dev/null || true").size() < 3 && servers < 60) {
    Server server({"-c", sharing.container.name()});
    CHECK(printed_by(server, "echo works") == "works\n");
    ++servers;
  }
  CHECK(container.sh("cat /replaced").size() >= 3);
  CHECK(container.sh("cat /received 2>/dev/null || true").empty());
}
