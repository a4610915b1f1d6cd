#include "tools/shell_command.hpp"

#include <doctest/doctest.h>

#include "tools/tool_table.hpp"
#include "unit/sandbox/world.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

mcp::ToolResult call_with(json arguments) {
  arguments.update({{"command", "true"}, {"rationale", "a test"}});
  World world([](FakeAgent& /*agent*/, const wire::Frame& /*request*/) { FAIL("the sandbox was used"); });
  tools::Arguments read(arguments);
  const mcp::Interruption interruption;
  mcp::CallContext context{"r1", "local", interruption};
  const tools::Settings settings;
  return tools::k_execute_command.call({world.sandbox, settings, read, context, settings.selection});
}

}  // namespace

TEST_CASE("shell_command: the setup quotes directory and variables") {
  CHECK(tools::shell_setup(std::nullopt, {}).empty());
  CHECK(tools::shell_setup("/a b", {}) == "cd -- '/a b'");
  CHECK(tools::shell_setup("/it's", {{"A", "1"}, {"B", "$x\n'"}}) ==
        "cd -- '/it'\\''s' && export 'A=1' && export 'B=$x\n'\\'''");
  CHECK(tools::shell_setup("~/x y", {}) == "cd -- ~/'x y'");
  CHECK(tools::shell_setup("~", {}) == "cd -- ~/''");
  CHECK(tools::shell_setup(std::nullopt, {{"A", ""}}) == "export 'A='");
}

TEST_CASE("shell_command: a request announces the lines that follow") {
  CHECK(tools::shell_request(3, "ab", "", "echo a") == "run 3 ab 0 1 \"echo a\"\necho a\n");
  CHECK(tools::shell_request(3, "ab", "cd -- '/x'", "\na\n\nb") == "run 3 ab 1 4 \"a\"\ncd -- '/x'\n\na\n\nb\n");
  CHECK(tools::shell_request(1, "ab", "export 'A=1\n2'", "a\n") == "run 1 ab 2 1 \"a\"\nexport 'A=1\n2'\na\n");
  CHECK(tools::shell_request(1, "ab", "", "echo \"\xC3\xA9\"") ==
        "run 1 ab 0 1 \"echo \\\"\\u00e9\\\"\"\necho \"\xC3\xA9\"\n");
}

TEST_CASE("shell_command: arguments that belong to a process are rejected") {
  for (const json& more :
       {json{{"tty", true}}, json{{"user", "root"}}, json{{"background", true}}, json{{"stdin", ""}},
        json{{"maxRuntime", 5}}, json{{"nice", 5}}, json{{"outputLimit", 100}}, json{{"env", {{"a.b", "1"}}}},
        json{{"waitFor", {{"port", 80}}}}, json{{"shell", "a b"}}, json{{"shell", std::string(65, 'a')}}}) {
    json arguments = more;
    arguments.emplace("shell", "main");
    CAPTURE(arguments.dump());
    CHECK(call_with(arguments).is_error);
  }
}
