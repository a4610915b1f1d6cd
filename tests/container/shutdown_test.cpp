#include <csignal>
#include <thread>

#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Less than the two seconds that clients wait before they kill a server.
constexpr seconds k_prompt{2};

void check_clean_exit(Server& server) {
  const int status = server.wait_for_exit(k_prompt);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace

TEST_CASE("shutdown: a cancellation shortly after SIGINT ends the command") {
  const Container container("dockbridge-test:slim", {"--init"});
  for (const int delay : {3, 10, 22}) {
    CAPTURE(delay);
    Server server({"-c", container.name()});
    server.initialize();
    const int id = server.start_call("execute_command", {{"command", "sleep 7655"}});
    eventually("the command runs", [&] { return !container.pids_of("sleep 7655").empty(); });
    server.signal(SIGINT);
    std::this_thread::sleep_for(milliseconds(delay));  // as recorded from Claude Code and Qwen Code
    cancel(server, id);
    eventually("the command is gone", [&] { return container.pids_of("sleep 7655").empty(); });
    check_clean_exit(server);
  }
}

TEST_CASE("shutdown: SIGINT alone leaves the command running, and the server ends promptly") {
  Connected c;
  const int id = c.server.start_call("execute_command", {{"command", "sleep 7656"}});
  eventually("the command runs", [&] { return !c.container.pids_of("sleep 7656").empty(); });
  c.server.signal(SIGINT);
  CHECK(field(fields_of(field(c.server.receive_answer(id), "result")), "returned") == "detached");
  check_clean_exit(c.server);
  CHECK(c.container.pids_of("sleep 7656").size() >= 1);
}

TEST_CASE("shutdown: input that ends after SIGINT does not delay the end") {
  Connected c;
  c.server.start_call("execute_command", {{"command", "sleep 7657"}});
  eventually("the command runs", [&] { return !c.container.pids_of("sleep 7657").empty(); });
  c.server.signal(SIGINT);
  c.server.close_input();
  check_clean_exit(c.server);
  CHECK(c.container.pids_of("sleep 7657").size() >= 1);
}
