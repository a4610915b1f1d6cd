#include "tools/process_list.hpp"

#include <doctest/doctest.h>

#include "tools/process_report.hpp"
#include "tools/wait_report.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using tools::happened_text;
using tools::list_line;
using wire::EndKind;
using wire::Phase;
using wire::WaitOutcome;

namespace {

wire::ProcessState running() {
  wire::ProcessState state;
  state.id = "proc_1_a";
  state.number = 3;
  state.ran_ms = 12'345;
  state.idle_ms = 3'210;
  state.command = "npm run dev";
  return state;
}

wire::ProcessState finished(EndKind end, int code) {
  wire::ProcessState state = running();
  state.phase = Phase::closed;
  state.end = end;
  state.end_code = code;
  state.ran_ms = 400;
  return state;
}

sandbox::Snapshot with_listener(WaitOutcome happened, std::optional<sandbox::Listener> listener) {
  sandbox::Snapshot snapshot;
  snapshot.state = running();
  snapshot.happened = happened;
  snapshot.listener = std::move(listener);
  return snapshot;
}

}  // namespace

TEST_CASE("list: one short line for each process") {
  CHECK(list_line(running()) == "p3 running 12 s, quiet 3.2 s: npm run dev");
  CHECK(list_line(finished(EndKind::exit, 1)) == "p3 exit 1 after 0.4 s: npm run dev");
  CHECK(list_line(finished(EndKind::signal, 9)) == "p3 Killed by signal 9 (SIGKILL) after 0.4 s: npm run dev");
  wire::ProcessState left = finished(EndKind::exit, 0);
  left.phase = Phase::exited;
  CHECK(list_line(left) == "p3 running (command exited 0): npm run dev");
  wire::ProcessState killed = finished(EndKind::signal, 9);
  killed.phase = Phase::exited;
  CHECK(list_line(killed) == "p3 running (command: Killed by signal 9 (SIGKILL)): npm run dev");
  wire::ProcessState paused = running();
  paused.paused = true;
  paused.command = "a\nb";
  CHECK(list_line(paused).starts_with("p3 paused 12 s, quiet 3.2 s: "));
  CHECK(list_line(paused).find('\n') == std::string::npos);
  wire::ProcessState asking = running();
  asking.waits_for_input = wire::WaitsForInput::yes;
  CHECK(list_line(asking) == "p3 running 12 s, waits for input: npm run dev");
}

TEST_CASE("list: a process without a number keeps its long id") {
  wire::ProcessState old = running();
  old.number = 0;
  old.ran_ms.reset();
  CHECK(tools::process_name(old) == "proc_1_a");
  CHECK(list_line(old) == "proc_1_a running, quiet 3.2 s: npm run dev");
}

TEST_CASE("wait report: an open port names its listener") {
  const wire::WaitCondition until{.port = 80};
  const auto text = [&](WaitOutcome happened, std::optional<sandbox::Listener> listener) {
    return happened_text(with_listener(happened, std::move(listener)), until, seconds(5));
  };
  CHECK(text(WaitOutcome::port, std::nullopt) == "\nPort 80 is open.");
  CHECK(text(WaitOutcome::port, sandbox::Listener{7, "node", true, "proc_1_a", 3}) == "\nPort 80 is open.");
  CHECK(text(WaitOutcome::ended, sandbox::Listener{7, "node", true, "proc_1_a", 3}).empty());
  CHECK(text(WaitOutcome::port, sandbox::Listener{7, "node a.js", false, "proc_1_b", 2}) ==
        "\nPort 80 is held by p2 (pid 7, `node a.js`), not by p3.");
  CHECK(text(WaitOutcome::ended, sandbox::Listener{7, "nginx", false, "", 0}) ==
        "\nPort 80 is held by pid 7 (`nginx`), not by p3.");
  CHECK(text(WaitOutcome::port, sandbox::Listener{}) ==
        "\nPort 80 is open, but its listener cannot be determined (no permission).");
  CHECK(text(WaitOutcome::nothing, std::nullopt) == "\nPort 80 is not open after 5 s.");
}

TEST_CASE("wait report: a timeout names the events that did not happen") {
  const auto text = [](const wire::WaitCondition& until) {
    return happened_text(with_listener(WaitOutcome::nothing, std::nullopt), until, milliseconds(1500));
  };
  CHECK(text({}) == "\nNot ended after 1.5 s.");
  CHECK(text({.input = true}) == "\nNot ended after 1.5 s.");
  CHECK(text({.pattern = "x"}) == "\nNo line matched after 1.5 s.");
  CHECK(text({.idle = seconds(2)}) == "\nNo pause of 2 s in the output after 1.5 s.");
  CHECK(text({.pattern = "x", .port = 80}) == "\nNo line matched after 1.5 s.\nPort 80 is not open after 1.5 s.");
}

TEST_CASE("wait report: a wait for a port or a line that a prompt ended says how to wait on") {
  const auto text = [](const wire::WaitCondition& until) {
    return happened_text(with_listener(WaitOutcome::input, std::nullopt), until, seconds(5));
  };
  CHECK(text({.pattern = "x", .input = true}) == "\nwaitFor with input: false waits on.");
  CHECK(text({.port = 80, .input = true}) == "\nwaitFor with input: false waits on.");
  CHECK(text({.input = true}).empty());
}

TEST_CASE("process ids: one, several or both, each once, up to a limit") {
  const auto read = [](mcp::json values) {
    tools::Arguments arguments(values);
    auto ids = tools::read_process_ids(arguments);
    CHECK_FALSE(arguments.error());
    return ids;
  };
  using Ids = std::vector<std::string>;
  CHECK(read(mcp::json::object()).empty());
  CHECK(read({{"processId", "p1"}}) == Ids{"p1"});
  CHECK(read({{"processId", "p1"}, {"processIds", {"p2", "p1", "p2"}}}) == Ids{"p1", "p2"});
  const mcp::json many = {{"processIds", std::vector<std::string>(33, "p1")}};
  tools::Arguments arguments(many);
  (void)tools::read_process_ids(arguments);
  CHECK(arguments.error());
}

TEST_CASE("list: the facts about several processes stay below 500 bytes") {
  std::vector<std::pair<std::string, std::string>> words = {{"p1", "running"}, {"p2", "no_such_process"}};
  CHECK(tools::status_facts(words) == mcp::json{{"processes", {{"p1", "running"}, {"p2", "no_such_process"}}}});
  for (int i = 3; i <= 32; ++i) {
    words.emplace_back("p" + std::to_string(i), "no_such_process");
  }
  CHECK(tools::status_facts(words).dump().size() <= 500);
  words.insert(words.begin(), {std::string(80, '\x01'), "no_such_process"});  // six bytes each in JSON
  CHECK(tools::status_facts(words).dump().size() <= 500);
}

TEST_CASE("list: counts the processes that are not in it") {
  using namespace dockbridge::test;
  json last = state_of("proc_1_b");
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    const json body = {{"processes", {state_of("proc_1_a"), last}}};
    agent.answer(request, {{"left", 12}, {"unreadable", 0}}, body.dump());
  });
  const auto text = [&] {
    const json none = json::object();
    tools::Arguments arguments(none);
    const mcp::Interruption interruption;
    const mcp::CallContext context{"r1", "local", interruption, {}};
    const tools::Settings settings;
    return tools::list_processes({world.sandbox, settings, arguments, context, settings.selection}).text;
  };
  CHECK(text().ends_with(": make\n… and 12 older"));
  last.update({{"phase", "closed"}, {"end", "exit"}});
  CHECK(text().ends_with(": make\n… and 12 older finished"));
}
