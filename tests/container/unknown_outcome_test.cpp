#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <fstream>

#include "support/field.hpp"
#include "support/file_tools.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Pauses a container until this object is destroyed, so a failed check leaves no container paused.
class Pause {
 public:
  explicit Pause(std::string container) : m_container(std::move(container)) {
    run_ok({"docker", "pause", m_container});
  }
  ~Pause() { run({"docker", "unpause", m_container}); }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  std::string m_container;
};

/// A docker command that can simulate an engine that is absent, broken or hung.
class FailingDocker {
 public:
  FailingDocker() {
    std::ofstream script(path());
    script << "#!/bin/sh\n"
              "case \"$(cat \"$0.fault\" 2>/dev/null)\" in\n"
              "no_engine) echo 'Cannot connect to the Docker daemon' >&2; exit 1 ;;\n"
              "engine_error) echo 'unexpected fault' >&2; exit 1 ;;\n"
              "engine_hung) exec sleep 60 ;;\n"
              "esac\n"
              "exec docker \"$@\"\n";
    script.close();
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string path() const { return (m_directory.path() / "docker").string(); }
  void fail_with(const std::string& fault) const { std::ofstream(path() + ".fault") << fault; }
  void recover() const { std::filesystem::remove(path() + ".fault"); }

 private:
  TemporaryDirectory m_directory;
};

}  // namespace

TEST_CASE("outcome: a call that fails with container_paused is never carried out") {
  for (const bool direct : {true, false}) {
    CAPTURE(direct);
    Files c({"--init"}, "dockbridge-test:slim",
            direct ? std::vector<std::string>{} : std::vector<std::string>{"--no-direct-line"});
    c.server.execute("true");
    std::vector<std::string> processes;
    {
      const Pause pause(c.container.name());
      std::vector<int> commands;
      std::vector<int> writes;
      for (int i = 0; i < 6; ++i) {
        commands.push_back(
            c.server.start_call("execute_command", {{"command", fmt::format("touch /app/command-{}", i)}}));
        writes.push_back(
            c.server.start_call("file_write", {{"filePath", fmt::format("/app/write-{}", i)}, {"content", "written"}}));
      }
      for (const int id : commands) {
        const json result = field(c.server.receive_answer(id), "result");
        CHECK(field(error_of(result), "code") == "container_paused");
        processes.push_back(fields_of(result).at("processId"));
        CHECK(says(result, "may have been started, or may still be started, as process " + processes.back()));
        CHECK(says(result, "check_process " + processes.back()));
      }
      for (std::size_t i = 0; i < writes.size(); ++i) {
        const json result = field(c.server.receive_answer(writes[i]), "result");
        CHECK(field(error_of(result), "code") == "container_paused");
        CHECK(says(result, fmt::format("the change to /app/write-{} may have been made, or may still be made", i)));
      }
    }
    CHECK(field(fields_of(c.server.execute("ls /app")), "stdout") == "");
    for (const std::string& process : processes) {
      CHECK(field(error_of(check(c.server, process)), "code") == "no_such_process");
    }
  }
}

TEST_CASE("outcome: a long request that was not sent in time is never sent") {
  for (const bool direct : {true, false}) {
    CAPTURE(direct);
    Files c({"--init"}, "dockbridge-test:slim",
            direct ? std::vector<std::string>{} : std::vector<std::string>{"--no-direct-line"});
    c.server.execute("true");
    const std::string content(3'000'000, 'x');
    std::vector<std::string> unsent;
    {
      const Pause pause(c.container.name());
      std::vector<int> calls;
      for (int i = 0; i < 3; ++i) {
        calls.push_back(
            c.server.start_call("file_write", {{"filePath", fmt::format("/app/{}", i)}, {"content", content}}));
      }
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const json result = field(c.server.receive_answer(calls[i]), "result");
        CHECK(field(error_of(result), "code") == "container_paused");
        if (!says(result, "may have been made")) {
          unsent.push_back(std::to_string(i));
        }
      }
    }
    CHECK(unsent.size() == 2);
    c.server.execute("true");
    for (const std::string& name : unsent) {
      CHECK(c.container.sh("ls /app/" + name + " 2>/dev/null || echo none") == "none");
    }
  }
}

TEST_CASE("outcome: a server that stops does not report a lost command as running") {
  Connected c;
  c.server.execute("true");
  {
    const Pause pause(c.container.name());
    const int call = c.server.start_call("execute_command", {{"command", "touch /app/ran"}});
    CHECK(c.server.stays_silent(milliseconds(300)));
    c.server.signal(SIGTERM);
    const json result = field(c.server.receive_answer(call), "result");
    CAPTURE(result.dump());
    CHECK(field(result, "isError") == true);
    CHECK(says(result, "the command may have been started as process"));
  }
}

TEST_CASE("outcome: an edit that fails with container_paused names the old revision") {
  Files c;
  REQUIRE(done(c.tools.write("/app/a.txt", "one\n")));
  const std::string revision = field(fields_of(c.tools.read("/app/a.txt")), "revision");
  {
    const Pause pause(c.container.name());
    const json result = c.tools.edit("/app/a.txt", "one", "two");
    CHECK(error_code(result) == "container_paused");
    CHECK(says(result, "the change to /app/a.txt may have been made, or may still be made"));
    CHECK(says(result, "the last revision you saw was " + revision.substr(0, 8)));
  }
  CHECK(field(fields_of(c.tools.read("/app/a.txt")), "revision") == revision);
}

TEST_CASE("outcome: input to a process in a paused container is rejected, not sent") {
  Connected c;
  const std::string process = start_in_background(c.server, "while read x; do echo \"got $x\"; done");
  {
    const Pause pause(c.container.name());
    const json result = c.server.call("send_input", {{"processId", process}, {"input", "lost"}});
    CHECK(field(error_of(result), "code") == "container_paused");
    CHECK_FALSE(says(result, "may have been delivered"));
  }
  const json after = c.server.call("send_input", {{"processId", process}, {"input", "next"}});
  CHECK(field(fields_of(after), "stdout") == "got next\n");
}

TEST_CASE("outcome: a process survives a pause, and the error names it") {
  Connected c;
  c.server.execute("true");
  const int call = c.server.start_call(
      "execute_command", {{"command", "touch began; until [ -e go ]; do sleep 0.1; done; echo finished"}});
  eventually("the command runs", [&] { return c.container.sh("ls /app") == "began"; });
  std::string process;
  {
    const Pause pause(c.container.name());
    const json result = field(c.server.receive_answer(call), "result");
    CHECK(field(error_of(result), "code") == "container_paused");
    process = fields_of(result).at("processId");
  }
  (void)c.container.sh("touch /app/go");
  const json ended = check(c.server, process, {{"timeout", 20}});
  CHECK(field(fields_of(ended), "exitCode") == 0);
  CHECK(field(fields_of(ended), "stdout") == "finished\n");
}

TEST_CASE("outcome: after an engine failure the error names the process") {
  for (const std::string fault : {"no_engine", "engine_error", "engine_hung"}) {
    CAPTURE(fault);
    const FailingDocker docker;
    Connected c({"--init"}, "dockbridge-test:slim",
                {"--via", "exec", "--docker-command", docker.path(), "--no-direct-line"});
    c.server.execute("true");
    const int call = c.server.start_call(
        "execute_command", {{"command", "touch began; until [ -e go ]; do sleep 0.1; done; echo finished"}});
    eventually("the command runs", [&] { return c.container.sh("ls /app") == "began"; });
    docker.fail_with(fault);
    ::kill(std::stoi(run_ok({"pgrep", "--newest", "--parent", std::to_string(c.server.pid())})), SIGKILL);
    const json result = field(c.server.receive_answer(call), "result");
    docker.recover();
    (void)c.container.sh("touch /app/go");
    CHECK(field(error_of(result), "code") == fault);
    const std::string process = fields_of(result).at("processId");
    CHECK(says(result, "may have been started, or may still be started, as process " + process));
    const json ended = check(c.server, process, {{"timeout", 20}});
    CHECK(field(fields_of(ended), "exitCode") == 0);
    CHECK(field(fields_of(ended), "stdout") == "finished\n");
  }
}
