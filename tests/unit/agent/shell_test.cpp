#include "agent/session/shell.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::command_arguments;
using agent::k_max_argument_bytes;
using agent::needs_script;

namespace {

using Words = std::vector<std::string>;

/// A directory that is the only one in PATH during the test.
class OnlyPath {
 public:
  OnlyPath() : m_saved(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "") {
    ::setenv("PATH", m_directory.path().c_str(), 1);
  }
  ~OnlyPath() { ::setenv("PATH", m_saved.c_str(), 1); }
  OnlyPath(const OnlyPath&) = delete;
  OnlyPath& operator=(const OnlyPath&) = delete;

  /// Creates a file in it and returns its path.
  [[nodiscard]] std::string add(const char* name, std::filesystem::perms perms) const {
    const auto file = m_directory / name;
    std::ofstream(file) << "#!/bin/false\n";
    std::filesystem::permissions(file, perms);
    return file.string();
  }

 private:
  std::string m_saved;
  test::TemporaryDirectory m_directory;
};

constexpr auto k_executable = std::filesystem::perms::owner_all;
constexpr auto k_plain = std::filesystem::perms::owner_read;

/// The arguments of `command` in a container without a shell.
Words words_of(const std::string& command) {
  auto arguments = command_arguments("", command, "/script");
  REQUIRE_MESSAGE(arguments, command);
  return *arguments;
}

std::string error_of(const std::string& shell, const std::string& command) {
  const auto arguments = command_arguments(shell, command, "/script");
  REQUIRE_MESSAGE(!arguments, command);
  return std::string(name_of(arguments.error().code));
}

}  // namespace

TEST_CASE("shell: any command is one argument of -c") {
  for (const std::string command : {"ls", "", "a 'b", "cat <<E\nx\nE\n", "sleep 1 &", "# nothing", "-c", "\xff"}) {
    const auto arguments = command_arguments("/bin/bash", command, "/script");
    REQUIRE(arguments);
    CHECK(*arguments == Words{"/bin/bash", "-c", command});
  }
}

TEST_CASE("shell: a command too long for an argument runs as a script") {
  const std::string longest(k_max_argument_bytes - 1, 'x');  // without the NUL
  CHECK_FALSE(needs_script("/bin/sh", longest));
  CHECK(needs_script("/bin/sh", longest + "x"));

  const auto fits = command_arguments("/bin/sh", longest, "/state/script");
  REQUIRE(fits);
  CHECK(*fits == Words{"/bin/sh", "-c", longest});
  const auto too_long = command_arguments("/bin/sh", longest + "x", "/state/script");
  REQUIRE(too_long);
  CHECK(*too_long == Words{"/bin/sh", "/state/script"});
}

TEST_CASE("shell: without a shell, no script is used") {
  CHECK_FALSE(needs_script("", std::string(k_max_argument_bytes, 'x')));
}

TEST_CASE("shell: a command with a NUL byte is rejected, not cut") {
  const std::string command("echo a\0b", 8);
  CHECK(error_of("/bin/bash", command) == "bad_request");
  CHECK(error_of("", command) == "bad_request");
  CHECK(error_of("/bin/bash", std::string(k_max_argument_bytes, '\0')) == "bad_request");
}

TEST_CASE("shell: without a shell, a program runs with plain words") {
  CHECK(words_of("/p") == Words{"/p"});
  CHECK(words_of("  /p \t a  b ") == Words{"/p", "a", "b"});
  CHECK(words_of("/p --a=b,c:d %e @f") == Words{"/p", "--a=b,c:d", "%e", "@f"});
}

TEST_CASE("shell: without a shell, quotes and backslashes work as in a shell") {
  CHECK(words_of(R"(/p 'a b' "c d")") == Words{"/p", "a b", "c d"});
  CHECK(words_of(R"(/p a'b'"c"d)") == Words{"/p", "abcd"});
  CHECK(words_of(R"(/p '' "")") == Words{"/p", "", ""});
  CHECK(words_of(R"(/p a\ b \* \')") == Words{"/p", "a b", "*", "'"});
  CHECK(words_of(R"(/p '$x `y` \ | *')") == Words{"/p", R"($x `y` \ | *)"});
  CHECK(words_of(R"(/p "a | b" "it's" "\"\\\$\`")") == Words{"/p", "a | b", "it's", R"("\$`)"});
  CHECK(words_of(R"(/p "\d+\n" '\d')") == Words{"/p", R"(\d+\n)", R"(\d)"});
  CHECK(words_of(R"(/p a\)") == Words{"/p", R"(a\)"});
}

TEST_CASE("shell: without a shell, a command that needs one is rejected") {
  for (const char* command :
       {"",       "  ",   "/p | /q", "/p > f", "/p < f", "/p & ",     "/p; /q",     "(/p)",   "/p *",  "/p a?",
        "/p [a]", "/p ~", "/p # x",  "/p $x",  "/p `q`", "/p \"$x\"", "/p \"`q`\"", "/p\n/q", "/p 'a", "/p \"a"}) {
    CHECK(error_of("", command) == "no_shell");
  }
}

TEST_CASE("shell: without a shell, a program is found as a shell would find it") {
  const OnlyPath path;
  const std::string tool = path.add("dockbridge-test-tool", k_executable);
  CHECK(words_of("dockbridge-test-tool -v") == Words{tool, "-v"});
  CHECK(error_of("", "dockbridge-test-no-tool -v") == "no_such_program");
}

TEST_CASE("shell: bash is preferred") {
  const OnlyPath path;
  const std::string bash = path.add("bash", k_executable);
  static_cast<void>(path.add("sh", k_executable));
  CHECK(agent::find_shell() == bash);
}

TEST_CASE("shell: a program is found in PATH first, then in the usual directories") {
  const OnlyPath path;
  const std::string decoy = path.add("sh", k_plain);
  const auto arguments = command_arguments("", "sh", "/script");
  REQUIRE(arguments);
  CHECK(arguments->front() != decoy);
  CHECK(arguments->front().ends_with("/sh"));
}
