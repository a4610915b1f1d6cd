#include "tools/arguments.hpp"

#include <doctest/doctest.h>

#include "tools/wait_arguments.hpp"

#include <functional>
#include <string>
#include <vector>

using namespace dockbridge;
using mcp::json;
using tools::Arguments;

namespace {

/// The error of these values when they are read like that; empty without an error.
std::string problem(const json& values, const std::function<void(Arguments&)>& read) {
  Arguments arguments(values);
  read(arguments);
  if (!arguments.error()) {
    return "";
  }
  CHECK(arguments.error()->code == ErrorCode::bad_arguments);
  return arguments.error()->message;
}

}  // namespace

TEST_CASE("arguments: values of the expected type are read unchanged") {
  const json values = json::parse(R"({"s":"text","empty":"","yes":true,"n":7,"d":1.5,"env":{"A":"1","B":"x=y"}})");
  Arguments arguments(values);
  CHECK(arguments.required_text("s") == "text");
  CHECK(arguments.required_text("empty") == "");
  CHECK(arguments.flag("yes", false));
  CHECK(arguments.integer("n", 0, 10) == 7);
  CHECK(arguments.duration("d", 0, 10) == milliseconds(1500));
  const auto variables = arguments.environment("env");
  REQUIRE(variables.size() == 2);
  CHECK(variables[0] == std::pair<std::string, std::string>("A", "1"));
  CHECK(variables[1] == std::pair<std::string, std::string>("B", "x=y"));
  CHECK_FALSE(arguments.error());
}

TEST_CASE("arguments: absent and null values count as not given") {
  for (const json& values : {json::object(), json::parse(R"({"a":null})")}) {
    Arguments arguments(values);
    CHECK_FALSE(arguments.text("a"));
    CHECK(arguments.flag("a", true));
    CHECK_FALSE(arguments.flag("a", false));
    CHECK_FALSE(arguments.integer("a", 0, 10));
    CHECK_FALSE(arguments.duration("a", 0, 10));
    CHECK(arguments.environment("a").empty());
    CHECK_FALSE(arguments.error());
  }
}

TEST_CASE("arguments: a missing required text is an error") {
  const auto read = [](Arguments& arguments) { arguments.required_text("command"); };
  CHECK(problem(json::object(), read) == "Missing argument: command");
  CHECK(problem({{"command", nullptr}}, read) == "Missing argument: command");
  const json none = json::object();
  Arguments arguments(none);
  arguments.required_text("action", "Call again with action: pause, resume");
  CHECK(arguments.error()->next_step == "Call again with action: pause, resume");
  Arguments others(none);
  others.required_text("command");
  CHECK(others.error()->next_step == "Call again with command");
}

TEST_CASE("arguments: a value of another type is rejected with the expected one") {
  const std::vector<std::pair<std::function<void(Arguments&)>, std::string>> readers = {
      {[](Arguments& a) { a.text("x"); }, "Invalid argument x: must be a string"},
      {[](Arguments& a) { a.required_text("x"); }, "Invalid argument x: must be a string"},
      {[](Arguments& a) { a.flag("x", true); }, "Invalid argument x: must be true or false"},
      {[](Arguments& a) { a.integer("x", 1, 5); }, "Invalid argument x: must be a whole number from 1 to 5"},
      {[](Arguments& a) { a.duration("x", 0, 5); }, "Invalid argument x: must be a number of seconds from 0 to 5"},
      {[](Arguments& a) { a.environment("x"); }, "Invalid argument x: must be an object of strings"},
  };
  for (const auto& [read, expected] : readers) {
    const std::string found = problem({{"x", json::array({1})}}, read);
    CHECK(found.starts_with(expected));
  }
  CHECK(problem({{"x", 5}}, [](Arguments& a) { a.text("x"); }) == "Invalid argument x: must be a string, got 5");
  CHECK(problem({{"x", "yes"}}, [](Arguments& a) { a.flag("x", true); }) ==
        "Invalid argument x: must be true or false, got \"yes\"");
}

TEST_CASE("arguments: a rejected value is not used") {
  const json values = {{"text", 1}, {"flag", "no"}, {"number", 99}};
  Arguments arguments(values);
  CHECK_FALSE(arguments.text("text"));
  CHECK(arguments.flag("flag", true));
  CHECK_FALSE(arguments.integer("number", 0, 10));
}

TEST_CASE("arguments: an integer is whole and within inclusive bounds") {
  const auto read = [](Arguments& arguments) { arguments.integer("n", 1, 5); };
  for (const json& good : {json(1), json(5), json(3.0), json(5U)}) {
    CHECK(problem({{"n", good}}, read).empty());
  }
  for (const json& bad : {json(0), json(6), json(-1), json(1.5), json("3x"), json(""), json(true), json(1e300),
                          json(-1e300), json(18446744073709551615ULL)}) {
    CAPTURE(bad);
    CHECK(problem({{"n", bad}}, read).starts_with("Invalid argument n: must be a whole number from 1 to 5, got "));
  }
}

TEST_CASE("arguments: seconds may have fractions, within inclusive bounds") {
  const auto duration_of = [](const json& value) {
    const json values = {{"t", value}};
    return Arguments(values).duration("t", 0, 3600);
  };
  CHECK(duration_of(0) == milliseconds(0));
  CHECK(duration_of(0.25) == milliseconds(250));
  CHECK(duration_of(20) == milliseconds(20'000));
  CHECK(duration_of(3600) == milliseconds(3'600'000));
  for (const json& bad : {json(-0.001), json(3600.001), json("20 s"), json(false), json(1e300)}) {
    CAPTURE(bad);
    CHECK(problem({{"t", bad}}, [](Arguments& a) {
            a.duration("t", 0, 3600);
          }).starts_with("Invalid argument t: must be a number of seconds from 0 to 3600, got "));
  }
}

TEST_CASE("arguments: environment variables need a valid name and value") {
  const auto read = [](Arguments& arguments) { arguments.environment("env"); };
  const auto problem_of = [&](const std::string& name, const json& value) {
    return problem({{"env", {{name, value}}}}, read);
  };
  CHECK(problem_of("A", "").empty());
  CHECK(problem_of("with space", "ä\n").empty());
  CHECK(problem_of("", "x").find("variable name ''") != std::string::npos);
  CHECK(problem_of("A=B", "x").find("variable name 'A=B'") != std::string::npos);
  CHECK(problem_of(std::string("A\0B", 3), "x").find("variable name 'A\\x00B'") != std::string::npos);
  CHECK(problem_of("A", 5) == R"(Invalid argument env: value of 'A' must be a string, such as "1")");
  CHECK(problem_of("A", nullptr) == R"(Invalid argument env: value of 'A' must be a string, such as "1")");
  CHECK(problem_of("A", std::string("x\0y", 3)) == "Invalid argument env: value of 'A' contains a NUL byte");
}

TEST_CASE("arguments: the first problem is reported") {
  const json values = {{"a", 1}, {"b", 2}};
  Arguments arguments(values);
  arguments.text("b");
  arguments.text("a");
  arguments.reject("c", "is bad too");
  REQUIRE(arguments.error());
  CHECK(arguments.error()->message == "Invalid argument b: must be a string, got 2");
}

TEST_CASE("arguments: a tool can reject a value") {
  CHECK(problem(json::object(), [](Arguments& a) { a.reject("since", "is not a cursor"); }) ==
        "Invalid argument since: is not a cursor");
}

TEST_CASE("arguments: numbers and booleans are accepted as strings") {
  const json values = {{"n", "3"}, {"t", "2.5"}, {"yes", "true"}, {"no", "false"}};
  Arguments arguments(values);
  CHECK(arguments.integer("n", 1, 5) == 3);
  CHECK(arguments.duration("t", 0, 5) == milliseconds(2500));
  CHECK(arguments.flag("yes", false));
  CHECK_FALSE(arguments.flag("no", true));
  CHECK_FALSE(arguments.error());
}

TEST_CASE("arguments: an unknown argument is an error that names the nearest one") {
  const auto step = [](const json& values) {
    Arguments arguments(values, tools::argument_aliases("execute_command"));
    arguments.required_text("command");
    arguments.text("cwd");
    arguments.duration("maxWaitTime", 0, 10);
    (void)tools::read_timeout(arguments, tools::k_max_timeout_seconds);
    REQUIRE(arguments.error());
    CHECK(arguments.error()->message.starts_with("Unknown argument: "));
    return arguments.error()->next_step;
  };
  CHECK(step({{"command", "make"}, {"comand", "typo"}}) == "Did you mean command?");
  CHECK(step({{"comand", "typo"}}) == "Did you mean command?");  // and not that command is missing
  CHECK(step({{"command", "make"}, {"max_wait_time", 3}}) == "Did you mean maxWaitTime?");
  CHECK(step({{"command", "make"}, {"maxWait", 3}}) == "Did you mean maxWaitTime?");
  CHECK(step({{"command", "make"}, {"time_out", 3}}) == "Did you mean timeout?");
  CHECK(step({{"command", "make"}, {"timeOut", 3}}) == "Did you mean timeout?");
  CHECK(step({{"command", "make"}, {"timeoutMS", 3}}) == "Did you mean timeout?");
  CHECK(step({{"command", "make"}, {"zzzzzz", nullptr}}) == "Accepted: command, cwd, maxWaitTime, timeout");
}

TEST_CASE("arguments: aliases are accepted, and own names take precedence") {
  const json values = {
      {"cmd", "make"}, {"workdir", "/a"}, {"cwd", "/b"}, {"inactivityTimeout", 3}, {"description", "x"}};
  Arguments arguments(values, tools::argument_aliases("execute_command"));
  CHECK(arguments.has("command"));
  CHECK(arguments.required_text("command") == "make");
  CHECK(arguments.text("cwd") == "/b");
  CHECK(arguments.duration("maxWaitTime", 0, 10) == milliseconds(3000));
  CHECK_FALSE(arguments.error());
}

TEST_CASE("arguments: an unknown argument of a nested object is reported with its path") {
  const json values = {{"edits", json::array({{{"old_string", "a"}, {"newStrng", "b"}}})}};
  Arguments arguments(values, tools::argument_aliases("file_edit"));
  for (Arguments& nested : arguments.objects("edits")) {
    CHECK(nested.required_text("oldString") == "a");
    nested.text("newString");
    arguments.adopt(nested);
  }
  REQUIRE(arguments.error());
  CHECK(arguments.error()->message == "Unknown argument: edits[0].newStrng");
  CHECK(arguments.error()->next_step == "Did you mean newString?");
}

TEST_CASE("arguments: a timeout above the limit of its tool is in milliseconds") {
  const auto read = [](double given, double most_seconds) {
    const json values = {{"timeout", given}};
    Arguments arguments(values);
    const auto timeout = tools::read_timeout(arguments, most_seconds);
    REQUIRE(timeout);
    std::vector<std::string> notes;
    tools::note_milliseconds(timeout, notes);
    CHECK(notes.empty() != timeout->was_milliseconds);
    return timeout->value;
  };
  CHECK(read(900, tools::k_max_timeout_seconds) == milliseconds(900));
  CHECK(read(900, tools::k_max_wait_seconds) == seconds(900));
  CHECK(read(3'600, tools::k_max_wait_seconds) == seconds(3'600));
  CHECK(read(90'000, tools::k_max_wait_seconds) == seconds(90));
}

TEST_CASE("arguments: a wait for a port or a line heeds a prompt unless the caller sets input") {
  const auto heeds = [](const json& wait_for, bool by_default = true) {
    const json values = {{"waitFor", wait_for}};
    Arguments arguments(values);
    wire::WaitCondition until;
    CHECK(tools::read_wait_for(arguments, until, by_default));
    CHECK_FALSE(arguments.error());
    return until.input;
  };
  CHECK(heeds({{"pattern", "ready"}}));
  CHECK(heeds({{"port", 80}}));
  CHECK_FALSE(heeds({{"port", 80}, {"input", false}}));
  CHECK_FALSE(heeds({{"pattern", "ready"}}, false));
  CHECK_FALSE(heeds({{"idle", 2}}));
  CHECK_FALSE(heeds({{"exit", true}}));
}

TEST_CASE("arguments: those of other clients' tools that change nothing are ignored") {
  const json values = {{"command", "make"}, {"instruction", "x"}, {"expected_replacements", 2}};
  Arguments arguments(values);
  CHECK(arguments.required_text("command") == "make");
  CHECK_FALSE(arguments.error());
}

TEST_CASE("arguments: a whole number is read as a text of digits") {
  const json values = {{"a", 1000.0}, {"b", 1000}, {"c", "12:3"}, {"d", 0.5}};
  Arguments arguments(values);
  CHECK(arguments.text_or_number("a") == "1000");
  CHECK(arguments.text_or_number("b") == "1000");
  CHECK(arguments.text_or_number("c") == "12:3");
  CHECK(arguments.text_or_number("d") == "0.5");
}

TEST_CASE("arguments: of several names for one number the largest counts") {
  const std::vector<tools::ArgumentAlias> aliases = {{"-A", "context"}, {"-B", "context"}};
  const auto read = [&](const json& values) {
    Arguments arguments(values, aliases);
    const auto number = arguments.integer("context", 0, 50);
    return arguments.error() ? arguments.error()->message : std::to_string(number.value_or(-1));
  };
  CHECK(read({{"-A", 1}, {"-B", 3}}) == "3");
  CHECK(read({{"-A", 4}, {"-B", 3}, {"context", 2}}) == "4");
  CHECK(read({{"context", nullptr}, {"-B", 3}}) == "3");
  CHECK(read(json::object()) == "-1");
}

TEST_CASE("arguments: an error names the argument as it was given") {
  const std::vector<tools::ArgumentAlias> aliases = {{"-A", "context"}, {"-B", "context"}, {"file_path", "filePath"}};
  const auto problem_of = [&](const json& values) {
    Arguments arguments(values, aliases);
    (void)arguments.integer("context", 0, 50);
    (void)arguments.text("filePath");
    return arguments.error() ? arguments.error()->message : "";
  };
  CHECK(problem_of({{"-A", 1}, {"-B", 99}}).starts_with("Invalid argument -B: "));
  CHECK(problem_of({{"context", 99}}).starts_with("Invalid argument context: "));
  CHECK(problem_of({{"file_path", 1}}).starts_with("Invalid argument file_path: "));
}
