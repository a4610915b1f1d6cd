#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "support/connected.hpp"
#include "support/field.hpp"
#include "support/file_tools.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

constexpr const char* k_image = "dockbridge-test:slim";

/// Podman with its own settings, and its API service. test.sh installs it and loads the image.
class Podman {
 public:
  Podman() {
    // No network, and no limits beyond those of this process, because neither is tested here. runc, because crun does
    // not start containers where both versions of cgroups are mounted.
    std::ofstream(m_directory / "containers.conf")
        << "[containers]\nnetns = \"none\"\ndefault_ulimits = [\"nofile=4096:4096\", \"nproc=4096:4096\"]\n"
        << "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"" << runtime() << "\"\n";
    m_service = ::fork();
    REQUIRE(m_service >= 0);
    if (m_service == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      const int log = ::open((m_directory / "service.log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      ::dup2(log, 1);
      ::dup2(log, 2);
      ::setenv("CONTAINERS_CONF", (m_directory / "containers.conf").c_str(), 1);
      ::execlp("podman", "podman", "system", "service", "--time=0", address().c_str(), nullptr);
      ::_exit(127);
    }
    eventually("podman's API answers", [&] { return std::filesystem::is_socket(m_directory / "podman.sock"); });
  }
  ~Podman() {
    ::kill(m_service, SIGTERM);
    ::waitpid(m_service, nullptr, 0);
  }
  Podman(const Podman&) = delete;
  Podman& operator=(const Podman&) = delete;

  [[nodiscard]] std::string address() const { return "unix://" + (m_directory / "podman.sock").string(); }
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    return {{"CONTAINERS_CONF", m_directory / "containers.conf"}};
  }
  [[nodiscard]] Finished run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "podman");
    return test::run(arguments, environment());
  }
  [[nodiscard]] std::string run_ok(const std::vector<std::string>& arguments) const {
    const Finished finished = run(arguments);
    REQUIRE_MESSAGE(finished.exit_code == 0, "podman " << arguments.front() << " failed: " << finished.err);
    return finished.out;
  }

 private:
  static const char* runtime() { return test::run({"runc", "--version"}).exit_code == 0 ? "runc" : "crun"; }

  TemporaryDirectory m_directory;
  pid_t m_service = -1;
};

enum class Via { api, command };

/// Name of a podman container. Removes the container in its destructor.
class PodmanContainer {
 public:
  explicit PodmanContainer(const Podman& podman) : m_podman(podman) {
    static int counter = 0;
    m_name = fmt::format("dockbridge-test-podman-{}-{}", ::getpid(), ++counter);
  }
  ~PodmanContainer() { (void)m_podman.run({"rm", "--force", "--time", "0", m_name}); }
  PodmanContainer(const PodmanContainer&) = delete;
  PodmanContainer& operator=(const PodmanContainer&) = delete;

  void start(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments = {"run", "--detach", "--init", "--workdir", "/app", "--name", m_name};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {k_image, "sleep", "infinity"});
    (void)m_podman.run_ok(arguments);
  }
  [[nodiscard]] std::unique_ptr<Server> serve(Via via) const {
    std::vector<std::string> arguments = {"-c", m_name, "--image", k_image};
    if (via == Via::api) {
      arguments.insert(arguments.end(), {"--docker-host", m_podman.address()});
    } else {
      arguments.insert(arguments.end(), {"--via", "exec", "--docker-command", "podman"});
    }
    auto server = std::make_unique<Server>(arguments, m_podman.environment());
    server->initialize();
    return server;
  }
  [[nodiscard]] const std::string& name() const { return m_name; }

 private:
  const Podman& m_podman;
  std::string m_name;
};

}  // namespace

TEST_CASE("podman: commands, files and input waits work over the API and the command") {
  const Podman podman;
  for (const Via via : {Via::api, Via::command}) {
    CAPTURE(static_cast<int>(via));
    const PodmanContainer container(podman);
    container.start();
    const auto server = container.serve(via);
    const json first = server->execute("echo hello; id -u; exit 3");
    CAPTURE(first.dump());
    CHECK(field(fields_of(first), "stdout") == "hello\n0\n");
    CHECK(field(fields_of(first), "exitCode") == 3);

    const FileTools files{*server};
    CHECK(field(files.write("/app/note", "one\ntwo\n"), "isError") == false);
    CHECK(text_of(files.read("/app/note")).find("two") != std::string::npos);
    CHECK(field(fields_of(server->execute("cat /app/note")), "stdout") == "one\ntwo\n");

    const json asks = server->execute("read x; echo \"got $x\"", {{"maxWaitTime", 15}});
    CHECK(field(fields_of(asks), "returned") == "waits_for_input");
    const json fed = server->call("send_input", {{"processId", field(fields_of(asks), "processId")}, {"input", "it"}});
    CHECK(field(fields_of(fed), "stdout") == "got it\n");
  }
}

TEST_CASE("podman: a background process outlives kill -9 of the server") {
  const Podman podman;
  for (const Via via : {Via::api, Via::command}) {
    CAPTURE(static_cast<int>(via));
    const PodmanContainer container(podman);
    container.start();
    auto first = container.serve(via);
    const std::string id = start_in_background(*first, "read x; echo \"got $x\"; exit 9");
    first->signal(SIGKILL);
    first->wait_for_exit();
    const auto second = container.serve(via);
    CHECK(field(fields_of(check(*second, id)), "status") == "running");
    second->call("send_input", {{"processId", id}, {"input", "it"}});
    const json ended = check(*second, id, {{"timeout", 20}, {"since", "0:0"}});
    CHECK(field(fields_of(ended), "stdout") == "got it\n");
    CHECK(field(fields_of(ended), "exitCode") == 9);
  }
}

TEST_CASE("podman: servers that create one missing container at once share it") {
  const Podman podman;
  for (const Via via : {Via::api, Via::command}) {
    CAPTURE(static_cast<int>(via));
    const PodmanContainer container(podman);
    std::vector<std::unique_ptr<Server>> servers;
    std::vector<int> calls;
    for (int i = 0; i < 4; ++i) {
      servers.push_back(container.serve(via));
    }
    for (const auto& server : servers) {
      calls.push_back(server->start_call("execute_command", {{"command", "pwd; echo x >> /app/all"}}));
    }
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const json result = field(servers[i]->receive_answer(calls[i], seconds(60)), "result");
      CAPTURE(result.dump());
      CHECK(field(fields_of(result), "stdout") == "/app\n");
    }
    CHECK(field(fields_of(servers.front()->execute("wc -l < /app/all")), "stdout") == "4\n");
  }
}

TEST_CASE("podman: the agent belongs to root in a container without root") {
  const Podman podman;
  for (const Via via : {Via::api, Via::command}) {
    CAPTURE(static_cast<int>(via));
    const PodmanContainer container(podman);
    container.start({"--user", "nobody"});
    const auto server = container.serve(via);
    CHECK(field(fields_of(server->execute("id -un; stat -c %u /.dockbridge /.dockbridge/agent-*")), "stdout") ==
          "nobody\n0\n0\n");
  }
}

TEST_CASE("podman: an agent that another user can replace is placed again") {
  // Podman reports every file as the container user's, so this cannot be seen from outside.
  const Podman podman;
  for (const Via via : {Via::api, Via::command}) {
    CAPTURE(static_cast<int>(via));
    const PodmanContainer container(podman);
    container.start();
    (void)container.serve(via)->execute("true");
    const auto in_container = [&](const char* user, const std::string& script) {
      return podman.run({"exec", "--user", user, container.name(), "sh", "-c", script}).exit_code;
    };
    REQUIRE(in_container("0", "chown 1000 /.dockbridge") == 0);
    REQUIRE(in_container("1000",
                         "cd /.dockbridge && name=$(echo agent-*) && mv $name real && "
                         "printf '#!/bin/sh\\nid -u >> /tmp/was-run\\n' > $name && chmod 755 $name") == 0);
    const auto server = container.serve(via);
    CHECK(field(fields_of(server->execute("stat -c %u /.dockbridge; readlink /proc/$PPID/exe")), "stdout")
              .get<std::string>()
              .starts_with("0\n/.dockbridge/agent-"));
    CHECK(in_container("0", "test -e /tmp/was-run") != 0);
  }
}

TEST_CASE("podman: a missing container without an image is reported as such") {
  const Podman podman;
  for (const Via via : {Via::api, Via::command}) {
    CAPTURE(static_cast<int>(via));
    const PodmanContainer container(podman);
    std::vector<std::string> arguments = {"-c", container.name(), "--image", "dockbridge-no-such-image"};
    const std::vector<std::string> way = via == Via::api
                                             ? std::vector<std::string>{"--docker-host", podman.address()}
                                             : std::vector<std::string>{"--via", "exec", "--docker-command", "podman"};
    arguments.insert(arguments.end(), way.begin(), way.end());
    Server server(arguments, podman.environment());
    CHECK(field(error_of(server.execute("true")), "code") == "no_such_container");
  }
}
