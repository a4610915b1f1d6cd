#include "tools/following.hpp"

#include <doctest/doctest.h>

#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

json grown(const std::string& process, const std::string& out, const char* happened) {
  json state = state_of(process);
  state["out"] = wire::to_json(wire::StreamState{out.size(), out.size(), out.size()});
  return {{"process", state}, {"carried", true}, {"happened", happened}};
}

/// A process that prints the next of `words` at each wait, and ends after the last. A wait without an event is answered
/// at once, because the followers here do not wait.
class Talkative {
 public:
  explicit Talkative(std::vector<std::string> words) : m_words(std::move(words)) {}

  void operator()(FakeAgent& agent, const wire::Frame& request) {
    const bool listens = request.head.at("until").contains("known");
    if (m_next == m_words.size()) {
      agent.answer(request, grown(request.head.at("process"), m_out, "ended"), m_out);
      return;
    }
    const bool grows = listens && !m_words[m_next].empty();
    m_out += m_words[m_next++];
    agent.answer(request, grown(request.head.at("process"), m_out, grows ? "grew" : "nothing"), m_out);
  }

 private:
  std::vector<std::string> m_words;
  std::size_t m_next = 0;
  std::string m_out;
};

/// The progress messages of a client that follows a process with output.
struct Follower {
  explicit Follower(std::vector<std::string> words)
      : world([agent = std::make_shared<Talkative>(std::move(words))](FakeAgent& to, const wire::Frame& request) {
          (*agent)(to, request);
        }) {}

  Result<sandbox::Snapshot> follow() {
    const json none = json::object();
    tools::Arguments arguments(none);
    mcp::CallContext context{"r1", "local", interruption};
    context.report_progress = [this](const std::string& message) { reports.push_back(message); };
    context.become_task_if_due = [this](Clock::time_point) { ++task_checks; };
    context.progress_detail = detail;
    context.task_mode = task_mode;
    const tools::Settings settings;
    const tools::ToolRequest call{world.sandbox, settings, arguments, context, settings.selection};
    return tools::Following(call, {}, seconds(20), {milliseconds(0), milliseconds(0)}).start(start_request());
  }

  World world;
  mcp::Interruption interruption;
  mcp::ProgressDetail detail = mcp::ProgressDetail::output;
  mcp::TaskMode task_mode = mcp::TaskMode::never;
  int task_checks = 0;
  std::vector<std::string> reports;
};

}  // namespace

TEST_CASE("following: new output is reported as it arrives, each part once") {
  Follower follower({"one\n", "two\n", "", "three\n"});
  const auto last = follower.follow();
  REQUIRE(last);
  CHECK(last->happened == wire::WaitOutcome::ended);
  CHECK(follower.reports == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("following: after a report there is a pause in which output is ignored") {
  Follower follower({"one\n", "two\n", "", "three\n", "four\n"});
  REQUIRE(follower.follow());
  std::vector<bool> listened;
  for (const wire::Frame& request : follower.world.container.requests("wait")) {
    listened.push_back(request.head.at("until").contains("known"));
  }
  // "three" is reported at once, because the pause had no output. "four" is reported after another pause.
  CHECK(listened == std::vector<bool>{false, false, true, false, false});
}

TEST_CASE("following: a process without output is reported by a heartbeat") {
  Follower follower({"", ""});
  REQUIRE(follower.follow());
  REQUIRE(follower.reports.size() == 1);
  CHECK(follower.reports[0].find("running for") == 0);
}

TEST_CASE("following: only the end of a flood is reported, as plain text") {
  Follower follower({"\x1b[31mred\x1b[0m\n", std::string(10'000, 'x') + "\n10%\r20%\r30%\n"});
  REQUIRE(follower.follow());
  REQUIRE(follower.reports.size() == 2);
  CHECK(follower.reports[0] == "red");
  CHECK(follower.reports[1].size() < 2200);
  CHECK(follower.reports[1].find("bytes of stdout before this]\nxxx") != std::string::npos);
  CHECK(follower.reports[1].ends_with("x\n30%"));
}

TEST_CASE("following: output is not read for a client without progress messages") {
  Follower follower({"", "one\n", "two\n"});
  follower.detail = mcp::ProgressDetail::heartbeat;
  REQUIRE(follower.follow());
  for (const wire::Frame& request : follower.world.container.requests("read")) {
    FAIL("read " << request.head.dump());
  }
  CHECK(!follower.reports.empty());
  for (const std::string& message : follower.reports) {
    CHECK(message.find("running for") == 0);
  }
}

TEST_CASE("following: a call that may become a task is checked after each slice") {
  Follower follower({"", "", ""});
  follower.detail = mcp::ProgressDetail::none;
  follower.task_mode = mcp::TaskMode::when_long;
  REQUIRE(follower.follow());
  CHECK(follower.task_checks == 3);
}
