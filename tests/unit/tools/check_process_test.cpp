#include <doctest/doctest.h>

#include "support/field.hpp"
#include "tools/tool_table.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// A process that has written `out` and `err`, and clients that check it.
struct Checked {
  std::string out;
  std::string err;
  json order = json::array();
  bool has_ended = false;
  tools::Settings settings{};
  std::shared_ptr<tools::ShownCursors> shown = std::make_shared<tools::ShownCursors>();
  World world{[this](FakeAgent& agent, const wire::Frame& request) {
    json state = state_of(k_process);
    state["out"] = {out.size(), out.size(), out.size()};
    state["err"] = {err.size(), err.size(), err.size()};
    if (has_ended) {
      state.update({{"phase", "closed"}, {"end", "exit"}, {"endCode", 3}});
    }
    agent.answer(
        request,
        {{"process", state}, {"carried", true}, {"happened", has_ended ? "ended" : "nothing"}, {"order", order}},
        out + err);
  }};

  mcp::ToolResult check(json arguments = json::object(), const std::string& client = "alice") {
    arguments.update({{"processId", k_process}, {"rationale", "a test"}});
    tools::Arguments read(arguments);
    const mcp::Interruption interruption;
    mcp::CallContext context{"r1", "local", interruption, {}};
    context.client = client;
    return tools::k_check_process.call(
        {world.sandbox, settings, read, context, settings.selection, Clock::now(), shown});
  }
  /// The text after the status.
  static std::string body_of(const mcp::ToolResult& result) {
    REQUIRE_FALSE(result.is_error);
    return result.text.substr(result.text.find("\n\n") + 2);
  }
  std::string delivered(const json& arguments = json::object(), const std::string& client = "alice") {
    const mcp::ToolResult result = check(arguments, client);
    if (result.on_delivered) {
      result.on_delivered();
    }
    return body_of(result);
  }
};

}  // namespace

TEST_CASE("check_process: shows each client only what it was not shown") {
  Checked process;
  CHECK(process.delivered() == "(no output)");
  process.out = "one\n";
  CHECK(process.delivered() == "one");
  CHECK(process.delivered() == "No new output. [stdout 0-4 shown before; since: \"0:0\" returns it]");
  process.err = "oops\n";
  process.out += "two\n";
  process.order = {4, 5};
  CHECK(process.delivered() == "[stdout 0-4 shown before; since: \"0:0\" returns it]\n[stderr]\noops\n[stdout]\ntwo");
  CHECK(process.delivered() == "No new output. [stdout 0-8, stderr 0-5 shown before; since: \"0:0\" returns it]");
  CHECK(process.delivered(json::object(), "bob") == "one\n[stderr]\noops\n[stdout]\ntwo");
}

TEST_CASE("check_process: all and since show what was shown before") {
  Checked process;
  process.out = "one\n";
  CHECK(process.delivered() == "one");
  CHECK(process.delivered({{"all", true}}) == "one");
  CHECK(process.delivered({{"since", "0:0"}}) == "one");
  CHECK(process.delivered({{"since", 2}}) == "e");
  CHECK(process.delivered({{"tail", 1}}) == "one");
  CHECK(process.delivered().starts_with("No new output."));
}

TEST_CASE("check_process: a reply that was not delivered shows nothing") {
  Checked process;
  process.out = "one\n";
  CHECK(Checked::body_of(process.check()) == "one");
  CHECK(Checked::body_of(process.check()) == "one");
  CHECK(process.delivered() == "one");
  CHECK(Checked::body_of(process.check()).starts_with("No new output."));
}

TEST_CASE("check_process: the last lines and a later part do not count as shown") {
  Checked process;
  process.out = "one\ntwo\nthree\n";
  CHECK(process.delivered({{"tail", 1}}) == "three");
  CHECK(process.delivered({{"since", "4:0"}}) == "two\nthree");
  CHECK(process.delivered() == "one\ntwo\nthree");
}

TEST_CASE("check_process: what is left out is counted from since on") {
  Checked process;
  process.out.assign(30'000, 'x');
  const std::string shown = process.delivered({{"since", 10'000}});
  CAPTURE(shown);
  CHECK(shown.starts_with("[10500 of 20000 bytes left out."));
}

TEST_CASE("check_process: the fields for programs say which bytes are missing") {
  Checked process;
  process.out.assign(30'000, 'x');
  process.err = "oops\xff\n";
  const json fields = process.check({{"since", 10'000}}).structured;
  CHECK(field(fields, "stdout") == std::string(9'494, 'x'));
  CHECK(field(fields, "stdoutFrom") == 10'000);
  CHECK(field(fields, "stdoutLeftOut") == 10'506);
  CHECK(field(fields, "stdoutGaps") ==
        json::array({{{"at", 9'494}, {"from", 19'494}, {"to", 30'000}, {"notStored", 0}}}));
  CHECK(field(fields, "stdoutReplaced") == 0);
  CHECK(field(fields, "stderr") == "oops\xEF\xBF\xBD\n");
  CHECK(field(fields, "stderrGaps") == json::array());
  CHECK(field(fields, "stderrReplaced") == 1);
}

TEST_CASE("check_process: names the part that an excerpt left out until it was read") {
  Checked process;
  for (int i = 1; i <= 3'000; ++i) {
    process.out += std::to_string(i) + "\n";
  }
  const std::string excerpt = process.delivered();
  const std::size_t at = excerpt.find("since: \"") + 8;
  const std::string rest = excerpt.substr(at, excerpt.find('"', at) - at);
  CHECK(process.delivered() ==
        "No new output. [stdout 0-13893 shown before in part; since: \"" + rest + "\" returns the rest]");
  process.out += "new\n";
  CHECK(process.delivered() == "[stdout 0-13893 shown before in part; since: \"" + rest + "\" returns the rest]\nnew");
  CHECK(process.delivered({{"since", rest}}).find("[stdout") == std::string::npos);
  CHECK(process.delivered().find("in part") != std::string::npos);
  for (std::string cursor = rest; cursor != "13897:0";) {
    const mcp::ToolResult page = process.check({{"since", cursor}});
    page.on_delivered();
    cursor = page.facts.at("cursor");
  }
  CHECK(process.delivered() == "No new output. [stdout 0-13897 shown before; since: \"0:0\" returns it]");
}

TEST_CASE("check_process: states the exit code once") {
  Checked process;
  process.out.assign(30'000, 'x');
  process.has_ended = true;
  const std::string text = process.check({{"since", 0}}).text;
  CHECK(text.starts_with("proc_1_abc ended. Exit code: 3\n\n[20500 of 30000 bytes left out."));
}

TEST_CASE("check_process: a timeout above an hour is read as milliseconds, and the reply says so") {
  Checked process;
  process.has_ended = true;
  const std::string text = process.check({{"timeout", 5'000}}).text;
  CAPTURE(text);
  CHECK(text.ends_with("Note: timeout was read as milliseconds (5 s)"));
  CHECK(process.check({{"timeout", 3'600}}).text.find("milliseconds") == std::string::npos);
}

TEST_CASE("execute_command: without check_process, the reply says how else to get the whole output") {
  const std::string out(30'000, 'x');
  World world([&](FakeAgent& agent, const wire::Frame& request) {
    json state = state_of(request.head.at("process"));
    state.update({{"phase", "closed"}, {"end", "signal"}, {"endCode", 15}, {"cause", "output"}});
    state["out"] = {out.size(), out.size(), out.size()};
    agent.answer(request, {{"process", state}, {"carried", true}, {"happened", "ended"}}, out);
  });
  json arguments = {{"command", "yes"}, {"rationale", "a test"}};
  tools::Arguments read(arguments);
  const mcp::Interruption interruption;
  const mcp::CallContext context{"r1", "local", interruption, {}};
  tools::Settings settings;
  settings.selection = tools::ToolSelection::parse("execute_command").value();
  const std::string text =
      tools::k_execute_command.call({world.sandbox, settings, read, context, settings.selection}).text;
  CHECK(
      text.starts_with("[Killed by signal 15 (SIGTERM). 28000 of 30000 bytes left out. Raise maxOutput, or write the "
                       "output to a file.]\n"));
  CHECK(text.ends_with("Killed by signal 15 (SIGTERM) (output limit exceeded)"));
}
