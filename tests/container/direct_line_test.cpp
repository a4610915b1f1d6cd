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

/// A directory of the host, and a container whose /app it is.
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

/// What runs a program as a user who may use the engine, and nothing else.
std::vector<std::string> as_nobody() {
  struct stat socket {};
  REQUIRE(::stat("/var/run/docker.sock", &socket) == 0);
  return {"setpriv", "--reuid", "65534", "--regid", std::to_string(socket.st_gid), "--clear-groups"};
}

std::string printed_by(Server& server, const std::string& command) {
  return field(fields_of(server.execute(command)), "stdout").get<std::string>();
}

}  // namespace

TEST_CASE("where /app is a directory of the host calls go by a socket in it, which nobody sees afterwards") {
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

TEST_CASE("doctor tells which way calls go") {
  const Sharing sharing;
  const auto told = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {program_path(), "-c", sharing.container.name(), "doctor"};
    command.insert(command.end(), more.begin(), more.end());
    return run_ok(command);
  };
  CHECK(told({}).find(has_direct_lines() ? "straight to the agent" : "Linux 6.16") != std::string::npos);
  CHECK(told({"--no-direct-line"}).find("pass through the engine") != std::string::npos);
}

TEST_CASE("a workspace that the container may not change does for a line as well") {
  const TemporaryDirectory workspace;
  Connected c({"--init", "--volume", workspace.path().string() + ":/app:ro"});
  CHECK(printed_by(c.server, "touch /app/x || echo refused") == "refused\n");
  CHECK(is_direct(c.server) == has_direct_lines());
}

TEST_CASE("where there is no line calls go through the engine, and the log says why") {
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

TEST_CASE("a directory in which the server's user may not make a socket is no obstacle") {
  const Sharing sharing;
  std::filesystem::permissions(sharing.workspace.path(), std::filesystem::perms::owner_all);
  Server server({"-c", sharing.container.name()}, {}, as_nobody());
  CHECK(printed_by(server, "echo works") == "works\n");
  CHECK_FALSE(is_direct(server));
  CHECK(server.log().find(has_direct_lines() ? "Permission denied" : "Linux 6.16") != std::string::npos);
}

TEST_CASE("a server whose user is not the container's gets a line in a directory of its own") {
  const Sharing sharing;
  run_ok({"chown", "65534", sharing.workspace.path().string()});
  std::filesystem::permissions(sharing.workspace.path(), std::filesystem::perms::owner_all);
  Server server({"-c", sharing.container.name()}, {}, as_nobody());
  CHECK(printed_by(server, "echo works") == "works\n");
  CHECK(is_direct(server) == has_direct_lines());
}

TEST_CASE("the engine's stream is not needed once there is a line") {
  const Sharing sharing;
  Server server({"-c", sharing.container.name(), "--via", "exec"});
  CHECK(printed_by(server, "echo before") == "before\n");
  const auto sessions = sharing.container.pids_of(k_session);
  ::kill(std::stoi(run_ok({"pgrep", "-P", std::to_string(server.pid())})), SIGKILL);
  CHECK(printed_by(server, "echo after") == "after\n");
  CHECK((sharing.container.pids_of(k_session) == sessions) == has_direct_lines());
  CHECK((server.log().find("reconnected") == std::string::npos) == has_direct_lines());
}

TEST_CASE("a session ends with its server, and a server finds another session, over a line too") {
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

TEST_CASE("somebody who puts sockets of their own in place of the server's learns nothing") {
  const Sharing sharing;
  const Container sibling("dockbridge-test:slim", {"--init", "--volume", sharing.workspace.path().string() + ":/app"});
  bool from_within = true;
  SUBCASE("in the container") {}
  SUBCASE("in another that has the directory too") {
    from_within = false;
  }
  const Container& container = from_within ? sharing.container : sibling;
  // As root, as fast as it can: takes away what appears, and listens in its place. What it hears is stored.
  run_ok({"docker", "exec", "--detach", container.name(), "python3", "-c", R"(
import os, socket, threading
def hear(listener):
    while True:
        peer, _ = listener.accept()
        words = peer.recv(1000)
        if words:
            open('/heard', 'ab').write(words)
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
                threading.Thread(target=hear, args=[listener], daemon=True).start()
                open('/replaced', 'a').write('x')
            except OSError:
                pass
)"});
  eventually("the other is at work", [&] { return container.sh("ls /").find("ready") != std::string::npos; });
  int servers = 0;
  while (container.sh("cat /replaced 2>/dev/null || true").size() < 3 && servers < 60) {
    Server server({"-c", sharing.container.name()});
    CHECK(printed_by(server, "echo works") == "works\n");
    ++servers;
  }
  CHECK(container.sh("cat /replaced").size() >= 3);
  CHECK(container.sh("cat /heard 2>/dev/null || true").empty());
}
