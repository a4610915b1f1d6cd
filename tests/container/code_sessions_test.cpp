#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "cli/bridge.hpp"
#include "support/container.hpp"
#include "support/field.hpp"
#include "wire/side_channel.hpp"

using namespace dockbridge;
using sandbox::Snapshot;
using test::Container;
using test::field;

namespace {

using nlohmann::json;

constexpr seconds k_event_patience{20};

/// A host that drives code sessions in a container.
struct CodeHost {
  explicit CodeHost(const Container& container) : bridge(options_of(container), log) {}

  static cli::Options options_of(const Container& container) {
    cli::Options options;
    options.container.name = container.name();
    return options;
  }
  sandbox::StartRequest request(wire::CodeSession session) {
    sandbox::StartRequest request;
    const auto id = bridge.sandbox().processes().new_process_id();
    REQUIRE(id);
    request.id = *id;
    request.command = "python " + session.name;
    request.cwd = "/app";
    request.owner = "local";
    request.rationale = "a test";
    request.session = std::move(session);
    return request;
  }
  Result<Snapshot> try_start(const sandbox::StartRequest& request) {
    return bridge.sandbox().processes().start(request, k_event_patience, {.known_side = 0}, {});
  }
  /// The processes of the owner that are code sessions and run.
  std::vector<wire::ProcessState> running() {
    const auto list = bridge.sandbox().processes().list("local", 100, {});
    REQUIRE(list);
    std::vector<wire::ProcessState> found;
    std::copy_if(list->processes.begin(), list->processes.end(), std::back_inserter(found),
                 [](const auto& state) { return state.running() && state.session; });
    return found;
  }

  Log log{2, LogLevel::off, LogFormat::text};
  cli::Bridge bridge;
};

/// The driver of a code session.
class Driver {
 public:
  Driver(CodeHost& host, const sandbox::StartRequest& request) : m_host(host), m_id(request.id) {
    const auto started = host.try_start(request);
    REQUIRE(started);
    m_state = started->state;
  }
  Driver(CodeHost& host, wire::CodeSession session) : Driver(host, host.request(std::move(session))) {}

  [[nodiscard]] const std::string& id() const { return m_id; }
  /// The latest state that was reported.
  [[nodiscard]] const wire::ProcessState& state() const { return m_state; }
  /// The next event; null if the process has ended without one.
  json event() {
    while (m_text.find('\n') == std::string::npos) {
      const auto slice = m_host.bridge.sandbox().processes().read(m_id, wire::Stream::side, m_read, 256UL * 1024, {});
      REQUIRE(slice);
      m_read += slice->bytes.size();
      m_pieces += slice->bytes;
      if (slice->bytes.empty() && !wait_for_more()) {
        return nullptr;
      }
      take_pieces();
    }
    const std::size_t end = m_text.find('\n');
    json event = json::parse(m_text.substr(0, end));
    m_text.erase(0, end + 1);
    return event;
  }
  void send(const json& request) {
    const auto taken = m_host.bridge.sandbox().control().send_side(m_id, request.dump() + "\n", {});
    REQUIRE(taken);
  }
  /// Runs a cell and returns its end.
  json run(const std::string& code) {
    send({{"op", "run"}, {"cell", ++m_cell}, {"code", code}});
    json found = event();
    while (!found.is_null() && field(found, "event") != "end") {
      found = event();
    }
    return found;
  }
  std::string value(const std::string& code) {
    const json end = run(code);
    REQUIRE_MESSAGE(field(end, "status") == "ok", end.dump());
    return field(end, "value", "text/plain").get<std::string>();
  }
  /// Waits for the end of the process.
  wire::ProcessState end() {
    const auto ended = m_host.bridge.sandbox().processes().wait(m_id, k_event_patience, {.closed = true}, {});
    REQUIRE(ended);
    CHECK(ended->happened == wire::WaitOutcome::ended);
    return ended->state;
  }

 private:
  bool wait_for_more() {
    const auto now = m_host.bridge.sandbox().processes().wait(m_id, k_event_patience, {.known_side = m_read}, {});
    REQUIRE(now);
    m_state = now->state;
    REQUIRE(now->happened != wire::WaitOutcome::nothing);
    return now->state.side.total > m_read;
  }
  void take_pieces() {
    std::string_view left = m_pieces;
    for (auto piece = wire::take_side_piece(left); piece && !piece->bytes.empty();
         piece = wire::take_side_piece(left)) {
      m_text += piece->bytes;
    }
    m_pieces.erase(0, m_pieces.size() - left.size());
  }

  CodeHost& m_host;
  std::string m_id;
  wire::ProcessState m_state;
  std::uint64_t m_read = 0;
  std::string m_pieces;
  std::string m_text;
  int m_cell = 0;
};

/// Starts sessions until one of them uses a warm interpreter.
Driver warm_session(CodeHost& host, wire::CodeSession session) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    Driver driver(host, session);
    if (driver.state().session->is_warm) {
      return driver;
    }
    REQUIRE(host.bridge.sandbox().control().end(driver.id(), wire::Cause::terminated, milliseconds(0), {}));
    std::this_thread::sleep_for(milliseconds(100));
  }
  FAIL("no warm interpreter was used");
  throw std::logic_error("unreachable");
}

}  // namespace

TEST_CASE("code session: Python keeps its state and its label") {
  const Container container;
  CodeHost host(container);
  Driver driver(host, {.name = "main", .may_use_ipython = false});
  const json ready = driver.event();
  CHECK(field(ready, "event") == "ready");
  CHECK(field(ready, "version").get<std::string>().starts_with("3."));
  CHECK(driver.value("x = 20\nx + 1") == "21");
  CHECK(driver.value("x") == "20");
  CHECK(driver.value("import os\nos.getcwd()") == "'/app'");
  REQUIRE(driver.state().session);
  CHECK(driver.state().session->name == "main");
  const auto listed = host.running();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].id == driver.id());
  CHECK(listed[0].session->kind == wire::CodeKind::python);
  CHECK(listed[0].session->name == "main");
  CHECK(listed[0].side.total > 0);
  // Another host finds it.
  CodeHost other(container);
  REQUIRE(other.running().size() == 1);
  CHECK(other.running()[0].session->name == "main");
  // The label stays after the end.
  CHECK(driver.run("import os\nos._exit(3)").is_null());
  const auto ended = driver.end();
  CHECK(ended.end_code == 3);
  REQUIRE(ended.session);
  CHECK(ended.session->name == "main");
}

TEST_CASE("code session: a session without a name ends after one cell") {
  const Container container;
  CodeHost host(container);
  Driver driver(host, wire::CodeSession{});
  CHECK(field(driver.event(), "event") == "ready");
  CHECK(driver.value("6 * 7") == "42");
  CHECK(driver.event().is_null());
  CHECK(driver.end().end_code == 0);
}

TEST_CASE("code session: the idle limit ends it, and the last event says so") {
  const Container container;
  CodeHost host(container);
  Driver driver(host, {.name = "main", .idle_limit = milliseconds(300), .may_use_ipython = false});
  CHECK(field(driver.event(), "event") == "ready");
  CHECK(driver.value("1") == "1");
  CHECK(field(driver.event(), "event") == "idle");
  CHECK(driver.event().is_null());
  const auto ended = driver.end();
  CHECK(ended.end == wire::EndKind::exit);
  CHECK(ended.end_code == 0);
}

TEST_CASE("code session: a missing interpreter is reported before anything starts") {
  const Container container;
  CodeHost host(container);
  const auto by_path = host.try_start(host.request({.name = "main", .interpreter = "/opt/none/bin/python"}));
  REQUIRE_FALSE(by_path);
  CHECK(by_path.error().code == ErrorCode::no_python);
  CHECK(by_path.error().message.find("/opt/none/bin/python") != std::string::npos);
  static_cast<void>(container.sh("rm -f /usr/bin/python3* /usr/local/bin/python3*"));
  const auto missing = host.try_start(host.request({.name = "main"}));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::no_python);
  CHECK(missing.error().next_step.find("apt-get install -y python3") != std::string::npos);
  CHECK(host.running().empty());
}

TEST_CASE("code session: an interpreter before 3.8 reports its version") {
  const Container container;
  CodeHost host(container);
  static_cast<void>(container.sh(
      "printf '#!/bin/sh\\nexec /usr/bin/python3 -c \"import sys; sys.version_info=(2,7,18); exec(sys.argv[1])\" \"$2\"' "
      "> /usr/local/bin/oldpython; chmod +x /usr/local/bin/oldpython"));
  Driver driver(host, {.name = "main", .interpreter = "oldpython"});
  const json event = driver.event();
  CHECK(field(event, "event") == "too_old");
  CHECK(field(event, "version") == "2.7.18");
  CHECK(driver.end().end_code == 1);
}

TEST_CASE("code session: neither a terminal nor another user") {
  const Container container;
  CodeHost host(container);
  auto on_terminal = host.request({.name = "main"});
  on_terminal.terminal = wire::TerminalSize{};
  const auto first = host.try_start(on_terminal);
  REQUIRE_FALSE(first);
  CHECK(first.error().code == ErrorCode::bad_request);
  auto as_user = host.request({.name = "main"});
  as_user.user = "nobody";
  const auto second = host.try_start(as_user);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::bad_request);
}

TEST_CASE("code session: the interpreter dies with its keeper") {
  const Container container;
  CodeHost host(container);
  Driver driver(host, {.name = "main", .may_use_ipython = false});
  CHECK(field(driver.event(), "event") == "ready");
  const std::string pid = std::to_string(driver.state().pid);
  static_cast<void>(container.sh("kill -9 $(ps -o ppid= -p " + pid + ")"));
  const auto ended = driver.end();
  CHECK(ended.phase == wire::Phase::lost);
  // Without an init process, the dead interpreter stays as a zombie.
  const std::string state = "sed -n 's/^State:.//p' /proc/" + pid + "/status 2>/dev/null";
  std::string now = container.sh(state);
  for (int attempt = 0; attempt < 100 && !now.empty() && !now.starts_with('Z'); ++attempt) {
    std::this_thread::sleep_for(milliseconds(20));
    now = container.sh(state);
  }
  CHECK_MESSAGE((now.empty() || now.starts_with('Z')), now);
}

TEST_CASE("warm interpreter: a session uses it with its own directory and environment") {
  const Container container;
  CodeHost host(container);
  wire::CodeSession session{.name = "main", .may_use_ipython = false, .warm_interpreters = 1};
  const Driver first = warm_session(host, session);
  CHECK(first.state().session->is_warm);
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto request = host.request(session);
    request.cwd = "/usr";
    request.environment = {{"GREETING", "é"}};
    Driver driver(host, request);
    CHECK(field(driver.event(), "event") == "ready");
    CHECK(driver.value("import os\nos.getcwd(), os.environ['GREETING'], os.environ['DOCKBRIDGE_PROCESS']") ==
          "('/usr', 'é', '" + request.id + "')");
    if (driver.state().session->is_warm) {
      // The label is part of the record.
      const auto running = host.running();
      CHECK(std::any_of(running.begin(), running.end(),
                        [&](const auto& state) { return state.id == request.id && state.session->is_warm; }));
      return;
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
  FAIL("no warm interpreter was used");
}

TEST_CASE("warm interpreter: another interpreter or an early variable needs a start of its own") {
  const Container container;
  CodeHost host(container);
  static_cast<void>(container.sh("ln -s /usr/bin/python3 /usr/local/bin/other"));
  const wire::CodeSession session{.name = "main", .may_use_ipython = false, .warm_interpreters = 1};
  static_cast<void>(warm_session(host, session));
  std::this_thread::sleep_for(milliseconds(300));
  auto early = host.request(session);
  early.environment = {{"PYTHONOPTIMIZE", "2"}};
  Driver optimized(host, early);
  CHECK_FALSE(optimized.state().session->is_warm);
  CHECK(field(optimized.event(), "event") == "ready");
  CHECK(optimized.value("import sys\nsys.flags.optimize") == "2");
  Driver other(host, {.name = "b", .interpreter = "other", .may_use_ipython = false});
  CHECK_FALSE(other.state().session->is_warm);
  early = host.request(session);
  early.cwd = "/nonexistent";
  const auto refused = host.try_start(early);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::bad_cwd);
}

TEST_CASE("warm interpreter: if it was killed, the session starts as usual") {
  const Container container;
  CodeHost host(container);
  const wire::CodeSession session{.name = "", .may_use_ipython = false, .warm_interpreters = 1};
  static_cast<void>(warm_session(host, session));
  for (int turn = 0; turn < 10; ++turn) {
    std::this_thread::sleep_for(milliseconds(turn * 20));
    static_cast<void>(container.sh("pkill -9 python3; while pgrep python3 >/dev/null; do sleep 0.01; done"));
    Driver driver(host, session);
    const json event = driver.event();
    REQUIRE_FALSE(event.is_null());
    CHECK(field(event, "event") == "ready");
    CHECK(driver.value("1 + 1") == "2");
  }
}

TEST_CASE("warm interpreter: it ends with the session of the agent") {
  const Container container;
  {
    CodeHost host(container);
    const wire::CodeSession session{.name = "", .may_use_ipython = false, .warm_interpreters = 2};
    Driver driver(host, session);
    CHECK(driver.value("1") == "1");
    for (int attempt = 0; attempt < 100 && container.pids_of("python3").size() < 2; ++attempt) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    CHECK(container.pids_of("python3").size() == 2);
  }
  for (int attempt = 0; attempt < 100 && !container.pids_of("python3").empty(); ++attempt) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  CHECK(container.pids_of("python3").empty());
}

TEST_CASE("memory pressure: the session that was unused longest ends, a running cell does not") {
  const Container container("dockbridge-test:slim", {"--memory", "200m", "--memory-swap", "200m"});
  CodeHost host(container);
  Driver busy(host, {.name = "busy", .may_use_ipython = false});
  CHECK(field(busy.event(), "event") == "ready");
  busy.send({{"op", "run"}, {"cell", 1}, {"code", "import time\ntime.sleep(60)"}});
  CHECK(field(busy.event(), "event") == "begin");
  Driver old(host, {.name = "old", .may_use_ipython = false});
  CHECK(field(old.event(), "event") == "ready");
  CHECK(old.value("len(bytearray(40 << 20)) and 1") == "1");
  CHECK(old.value("keep = b'x' * (40 << 20)\n1") == "1");
  Driver recent(host, {.name = "recent", .may_use_ipython = false});
  CHECK(field(recent.event(), "event") == "ready");
  CHECK(recent.value("1") == "1");
  // Fills the container to about 97 % in steps, so that the kernel kills nobody.
  Driver hog(host, {.name = "hog", .may_use_ipython = false});
  CHECK(field(hog.event(), "event") == "ready");
  hog.send({{"op", "run"},
            {"cell", 1},
            {"code",
             "import time\n"
             "def used():\n"
             "    try:\n"
             "        base = '/sys/fs/cgroup/'\n"
             "        stat = dict(line.split() for line in open(base + 'memory.stat'))\n"
             "        return int(open(base + 'memory.current').read()) - int(stat['inactive_file'])\n"
             "    except FileNotFoundError:\n"
             "        base = '/sys/fs/cgroup/memory/'\n"
             "        stat = dict(line.split() for line in open(base + 'memory.stat'))\n"
             "        return int(open(base + 'memory.usage_in_bytes').read()) - int(stat['total_inactive_file'])\n"
             "held = []\n"
             "while used() < 194 << 20:\n"
             "    held.append(b'x' * (1 << 20))\n"
             "time.sleep(60)"}});
  CHECK(field(hog.event(), "event") == "begin");
  const auto ended = old.end();
  CHECK(ended.cause == wire::Cause::memory);
  CHECK(ended.end == wire::EndKind::signal);
  CHECK(ended.end_code == 15);
  const auto running = host.running();
  const auto runs = [&](const std::string& name) {
    return std::any_of(running.begin(), running.end(), [&](const auto& state) { return state.session->name == name; });
  };
  CHECK(runs("busy"));
  CHECK(runs("hog"));
  CHECK(runs("recent"));
}
