#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr const char* k_mark = "/tmp/was-run";

/// File name of the agent. Every process in a container can see it.
std::string agent_name() {
  static const std::string name = [] {
    Connected c;
    c.server.execute("true");
    return c.container.sh("basename /.dockbridge/agent-*");
  }();
  return name;
}

/// A container with a hostile user of uid 1000, who plants programs at the possible paths of the agent.
struct Attacked {
  Container container;

  explicit Attacked(const std::vector<std::string>& options) : container("dockbridge-test:slim", options) {}

  [[nodiscard]] Finished as_hostile(const std::string& script) const {
    return run({"docker", "exec", "--user", "1000", container.name(), "sh", "-c", script});
  }
  /// Plants a program at the agent's path. When it runs, it records the uid that it runs as.
  [[nodiscard]] bool plant(const std::string& folder) const {
    return as_hostile(fmt::format("mkdir -p {0} && printf '#!/bin/sh\\nid -u >> {2}\\n' > {0}/{1} && chmod 755 {0}/{1}",
                                  folder, agent_name(), k_mark))
               .exit_code == 0;
  }
  [[nodiscard]] bool planted_was_run() const {
    return run({"docker", "exec", container.name(), "test", "-e", k_mark}).exit_code == 0;
  }
  [[nodiscard]] json execute(const std::string& command, const char* via = "engine",
                             const std::map<std::string, std::string>& environment = {}) const {
    Server server({"-c", container.name(), "--via", via}, environment);
    return server.execute(command);
  }
};

}  // namespace

TEST_CASE("hostile user: an agent planted on a tmpfs at /tmp is not run") {
  for (const char* via : {"engine", "exec"}) {
    CAPTURE(via);
    const Attacked attacked({"--init", "--read-only", "--tmpfs", "/tmp:exec", "--volume", "/app"});
    REQUIRE(attacked.plant("/tmp/.dockbridge-agent"));
    const json result = attacked.execute("id -u", via);
    CAPTURE(result.dump());
    CHECK(field(fields_of(result), "stdout") == "0\n");
    CHECK_FALSE(attacked.planted_was_run());
  }
}

TEST_CASE("hostile user: the agent is not placed in another user's workdir") {
  const Attacked attacked({"--init", "--read-only", "--tmpfs", "/tmp:exec", "--volume", "/app"});
  (void)attacked.container.sh("chown 1000 /app");
  for (const bool planted : {false, true}) {
    CAPTURE(planted);
    if (planted) {
      REQUIRE(attacked.plant("/app/.dockbridge-agent"));
    }
    const json result = attacked.execute("id -u");
    const json error = error_of(result);
    CHECK(field(error, "code") == "agent_not_placed");
    CHECK(field(error, "message").get<std::string>().find("/app belongs to uid 1000") != std::string::npos);
    CHECK(field(error, "nextStep").get<std::string>().find("--volume /var/lib/dockbridge") != std::string::npos);
    CHECK_FALSE(attacked.planted_was_run());
    CHECK(attacked.container.sh("find /app -user 0") == "");
  }
}

TEST_CASE("hostile user: the agent is not placed in a workdir that others can write to") {
  const Attacked attacked({"--init", "--read-only", "--tmpfs", "/tmp:exec", "--volume", "/app"});
  (void)attacked.container.sh("chmod 1777 /app");
  REQUIRE(attacked.plant("/app/.dockbridge-agent"));
  CHECK(field(error_of(attacked.execute("id -u")), "code") == "agent_not_placed");
  CHECK_FALSE(attacked.planted_was_run());
}

TEST_CASE("hostile user: an agent planted on a tmpfs over the agent's folder is not run") {
  for (const std::string mount :
       {"--tmpfs=/.dockbridge:exec,mode=1777", "--mount=type=tmpfs,destination=/.dockbridge,tmpfs-mode=1777"}) {
    CAPTURE(mount);
    const Attacked attacked({"--init", mount, "--volume", "/var/lib/dockbridge"});
    REQUIRE(attacked.plant("/.dockbridge"));
    const json result = attacked.execute("id -u; readlink /proc/$PPID/exe");
    CAPTURE(result.dump());
    CHECK(field(fields_of(result), "stdout") == "0\n/var/lib/dockbridge/" + agent_name() + "\n");
    CHECK_FALSE(attacked.planted_was_run());
  }
}

TEST_CASE("hostile user: a file of another user at the agent's path is replaced, not run") {
  const Attacked attacked({"--init"});
  (void)attacked.container.sh(
      fmt::format("mkdir -m 755 /.dockbridge && touch /.dockbridge/{0} && chmod 755 /.dockbridge/{0} && "
                  "chown 1000 /.dockbridge/{0}",
                  agent_name()));
  REQUIRE(
      attacked.as_hostile(fmt::format("printf '#!/bin/sh\\nid -u >> {}\\n' > /.dockbridge/{}", k_mark, agent_name()))
          .exit_code == 0);
  CHECK(field(fields_of(attacked.execute("stat -c '%u %a' /.dockbridge/agent-*")), "stdout") == "0 755\n");
  CHECK_FALSE(attacked.planted_was_run());
}

TEST_CASE("hostile user: an identical agent in another user's folder is not run") {
  const Attacked attacked({"--init", "--volume", "/var/lib/dockbridge"});
  (void)attacked.execute("true");
  // The check would find the right content, but the user could replace the file before the start.
  (void)attacked.container.sh("chown 1000 /.dockbridge");
  REQUIRE(attacked.as_hostile("cd /.dockbridge && mv agent-* x && cp x " + agent_name()).exit_code == 0);
  const json result = attacked.execute("readlink /proc/$PPID/exe");
  CAPTURE(result.dump());
  CHECK(field(fields_of(result), "stdout") == "/var/lib/dockbridge/" + agent_name() + "\n");
}

TEST_CASE("hostile user: an examined agent is trusted until the container restarts") {
  const TemporaryDirectory state;
  const Attacked attacked({"--init", "--volume", "/var/lib/dockbridge"});
  const auto place = [&] {
    const json result = attacked.execute("readlink /proc/$PPID/exe", "engine", {{"XDG_STATE_HOME", state.path()}});
    CAPTURE(result.dump());
    return field(fields_of(result), "stdout").get<std::string>();
  };
  const std::string usual = "/.dockbridge/" + agent_name() + "\n";
  CHECK(place() == usual);
  // Only root can do this. It shows whether the agent is examined.
  (void)attacked.container.sh("chmod 777 /.dockbridge");
  CHECK(place() == usual);
  run_ok({"docker", "restart", "--time", "0", attacked.container.name()});
  CHECK(place() == "/var/lib/dockbridge/" + agent_name() + "\n");
}

TEST_CASE("hostile user: state directories made by other users are not used") {
  const Attacked attacked({"--init", "--tmpfs", "/tmp:exec"});
  (void)attacked.container.sh("mkdir -p /var/lib/dockbridge/state && chmod 1777 /var/lib/dockbridge/state");
  REQUIRE(attacked
              .as_hostile("cd /var/lib/dockbridge/state && mkdir -m 777 0 && ln -s /etc/passwd 0/expired && "
                          "mkdir -m 777 /tmp/theirs && ln -s /tmp/theirs /tmp/.dockbridge-0")
              .exit_code == 0);
  const json result = attacked.execute("echo kept");
  CAPTURE(result.dump());
  CHECK(field(fields_of(result), "stdout") == "kept\n");
  CHECK(attacked.container.sh("find /var/lib/dockbridge/state/0 /tmp/theirs -user 0") == "");
  CHECK(attacked.container.sh("stat -c '%u %a' /run/.dockbridge-0") == "0 700");
}

TEST_CASE("hostile user: no state is stored in a directory that others can replace") {
  // The owner of a directory can rename its entries despite the sticky bit.
  const Attacked attacked({"--init", "--tmpfs", "/var/lib/dockbridge/state:uid=1000,mode=1777"});
  (void)attacked.container.sh("chmod 777 /tmp");
  Server server({"-c", attacked.container.name()});
  CHECK(field(fields_of(server.execute("echo before")), "stdout") == "before\n");
  for (const std::string place : {"/var/lib/dockbridge/state/0", "/tmp/.dockbridge-0"}) {
    (void)attacked.as_hostile(fmt::format("mv {0} {0}.theirs; mkdir -m 777 {0}", place));
  }
  // More processes than prepared keepers: the others open the state directory by its path.
  for (int i = 0; i < 8; ++i) {
    start_in_background(server, "sleep 60");
  }
  CHECK(attacked.container.sh("find /var/lib/dockbridge/state/0 /tmp/.dockbridge-0 -user 0") == "");
}

TEST_CASE("agent: a read-only container works with a volume or its own user's workdir") {
  std::vector<std::string> options = {"--init", "--read-only", "--tmpfs", "/tmp"};
  std::string path;
  SUBCASE("a volume for dockbridge") {
    options.insert(options.end(), {"--volume", "/var/lib/dockbridge"});
    path = "/var/lib/dockbridge/";
  }
  SUBCASE("a volume at the workdir") {
    options.insert(options.end(), {"--volume", "/app"});
    path = "/app/.dockbridge-agent/";
  }
  SUBCASE("a workdir that belongs to the container's user") {
    options.insert(options.end(), {"--volume", "/app", "--user", "1000:1000"});
    path = "/app/.dockbridge-agent/";
  }
  const Container container("dockbridge-test:slim", options);
  if (options.back() == "1000:1000") {
    run_ok({"docker", "exec", "--user", "0", container.name(), "chown", "1000", "/app"});
  }
  for (int servers = 0; servers < 2; ++servers) {
    Server server({"-c", container.name()});
    const json result = server.execute("readlink /proc/$PPID/exe");
    CAPTURE(result.dump());
    CHECK(field(fields_of(result), "stdout").get<std::string>().starts_with(path));
  }
}
