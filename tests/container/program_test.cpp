#include <doctest/doctest.h>

#include "support/connected.hpp"
#include "support/field.hpp"

// The subcommands and the log of the program.

using namespace dockbridge;
using namespace dockbridge::test;

TEST_CASE("call: prints the result, and the exit status is 0 on success") {
  const Container container("dockbridge-test:slim", {"--init"});
  const auto call = [&](const std::string& tool, const std::string& arguments) {
    return run({program_path(), "-c", container.name(), "call", tool, arguments});
  };
  const Finished good = call("execute_command", R"({"command":"echo only once; sleep 2.5","rationale":"x"})");
  CHECK(good.exit_code == 0);
  CHECK(good.out == "only once\n\nExit code: 0\n");
  CHECK(good.err.find("running for") != std::string::npos);
  CHECK(good.err.find("only once") == std::string::npos);
  CHECK(call("execute_command", R"({"command":"true"})").exit_code == 0);  // no rationale is required
  CHECK(call("execute_command", "{}").exit_code == 1);
  CHECK(call("no_such_tool", "{}").exit_code == 2);
  const Finished bad = call("execute_command", R"({"command": bad})");
  CHECK(bad.exit_code == 2);
  CHECK(bad.err.find("Invalid JSON: parse error at line 1, column 13: ") != std::string::npos);
}

TEST_CASE("call: control characters are escaped on a terminal unless --raw is given") {
  const Container container("dockbridge-test:slim", {"--init"});
  // Clear screen, set clipboard (OSC 52), C1 sequence, bell, another character set, reversed text.
  const std::string hostile = "\x1b[2Jx\x1b]52;c;ZXZpbA==\x07y\u009b31mz\x0e\u202etxt";
  (void)container.sh(
      "printf '%b' '\\033[2Jx\\033]52;c;ZXZpbA==\\007y\\0302\\023331mz\\016\\0342\\0200\\0256txt' > /app/hostile");
  const std::string arguments = R"({"filePath":"/app/hostile","rationale":"x"})";
  const std::string call = program_path() + " -c " + container.name() + " call file_read '" + arguments + "'";
  const auto on_terminal = [](const std::string& command) {
    return run({"script", "--quiet", "--return", "--command", command, "/dev/null"});
  };
  const Finished shown = on_terminal(call);
  CAPTURE(shown.out);
  CHECK(shown.exit_code == 0);
  CHECK(shown.out.find("\\x1b[2Jx\\x1b]52;c;ZXZpbA==\\x07y\\x9b31mz\\x0e\\u202etxt") != std::string::npos);
  for (const char* control : {"\x1b", "\x07", "\u009b", "\x0e", "\u202e"}) {
    CHECK(shown.out.find(control) == std::string::npos);
  }
  CHECK(on_terminal(call + " --raw").out.find(hostile) != std::string::npos);
  CHECK(run({program_path(), "-c", container.name(), "call", "file_read", arguments}).out.find(hostile) !=
        std::string::npos);
  // Errors go to stderr, which is the same terminal.
  const Finished failed = on_terminal(
      program_path() + " -c " + container.name() +
      R"( call file_edit '{"filePath":"/app/hostile","oldString":"none","newString":"x","rationale":"x"}')");
  CHECK(failed.exit_code == 1);
  CHECK(failed.out.find('\x1b') == std::string::npos);
}

TEST_CASE("doctor: reports success for a working container") {
  const Container container("dockbridge-test:slim", {"--init"});
  const Finished finished = run({program_path(), "-c", container.name(), "doctor"});
  CHECK(finished.exit_code == 0);
  CHECK(finished.out.find("agent") != std::string::npos);
  CHECK(finished.out.find("BAD") == std::string::npos);
}

TEST_CASE("audit log: has one line per call and no secrets") {
  const Container container("dockbridge-test:slim", {"--init"});
  Server server({"-c", container.name(), "--log-format", "json"});
  server.initialize();
  server.execute("cat > /dev/null; echo done", {{"env", {{"TOKEN", "s3cret-value"}}}, {"stdin", "s3cret-input"}});
  eventually("the line is written", [&] { return server.log().find("execute_command") != std::string::npos; });
  const std::string log = server.log();
  CHECK(log.find("s3cret") == std::string::npos);
  const std::size_t begin = log.rfind('\n', log.find("execute_command")) + 1;
  const json line = json::parse(log.substr(begin, log.find('\n', begin) - begin));
  CHECK(field(line, "tool") == "execute_command");
  CHECK(field(line, "rationale") == "a test");
  CHECK(field(line, "outcome") == "ok");
  CHECK(line.contains("request"));
  CHECK(line.contains("ms"));
  CHECK(field(line, "container") == container.name());
}
