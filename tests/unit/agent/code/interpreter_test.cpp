#include "agent/code/interpreter.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agent/code/driver_command.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::find_python;
using agent::InterpreterSearch;
using agent::python_install_command;

namespace {

namespace fs = std::filesystem;

/// Directories with programs that do nothing.
struct Programs {
  test::TemporaryDirectory directory;

  [[nodiscard]] std::string add(const std::string& name, fs::perms perms = fs::perms::owner_all) const {
    const fs::path path = directory / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/false\n";
    fs::permissions(path, perms);
    return path.string();
  }
  [[nodiscard]] InterpreterSearch search(const std::string& path = "/nonexistent") const {
    return {path, directory.path().string(), directory.path().string()};
  }
  [[nodiscard]] Error error_for(const std::string& wanted) const {
    const auto found = find_python(wanted, search());
    REQUIRE_FALSE(found);
    return found.error();
  }
};

}  // namespace

TEST_CASE("interpreter: python3 of the PATH is preferred to python") {
  const Programs programs;
  const std::string python = programs.add("a/python");
  const std::string python3 = programs.add("b/python3");
  const std::string path = (programs.directory / "a").string() + ":" + (programs.directory / "b").string();
  CHECK(find_python("", programs.search(path)) == python3);
  fs::remove(python3);
  // The usual directories of the machine may have python3.
  const auto found = find_python("", programs.search(path));
  REQUIRE(found);
  CHECK((*found == python || found->ends_with("/python3")));
}

TEST_CASE("interpreter: a relative PATH counts from the working directory") {
  const Programs programs;
  const std::string python3 = programs.add("bin/python3");
  CHECK(find_python("", programs.search("bin")) == python3);
}

TEST_CASE("interpreter: a virtual environment has its interpreter in bin") {
  const Programs programs;
  const std::string python = programs.add("venv/bin/python");
  CHECK(find_python((programs.directory / "venv").string(), programs.search()) == python);
  const std::string python3 = programs.add("venv/bin/python3");
  CHECK(find_python((programs.directory / "venv").string(), programs.search()) == python3);
  CHECK(find_python("venv", programs.search()) == python3);
  CHECK(find_python("~/venv", programs.search()) == python3);
}

TEST_CASE("interpreter: a program is used as it is named") {
  const Programs programs;
  const std::string pypy = programs.add("opt/pypy3");
  CHECK(find_python(pypy, programs.search()) == pypy);
  CHECK(find_python("opt/pypy3", programs.search()) == programs.directory.path().string() + "/opt/pypy3");
  CHECK(find_python("pypy3", programs.search((programs.directory / "opt").string())) == pypy);
}

TEST_CASE("interpreter: an error names the path that is wrong") {
  const Programs programs;
  const std::string base = programs.directory.path().string();
  static_cast<void>(programs.add("empty/file"));
  CHECK(programs.error_for("/nonexistent/python3").message == "No such file or directory: /nonexistent/python3");
  CHECK(programs.error_for("empty").message == "No bin/python3 in " + base + "/empty");
  CHECK(programs.error_for("python9").message == "Interpreter not found in PATH: python9");
  CHECK(programs.error_for("python9").code == ErrorCode::no_python);
  CHECK(programs.error_for(std::string("a\0b", 3)).code == ErrorCode::bad_request);
  fs::create_symlink("/nonexistent/base", programs.directory / "empty/python3");
  CHECK(programs.error_for("empty/python3").message == "No such file or directory: " + base + "/empty/python3");
}

TEST_CASE("interpreter: the distribution determines the command that installs Python") {
  CHECK(python_install_command("ID=debian\n") == "apt-get update && apt-get install -y python3");
  CHECK(python_install_command("NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n") ==
        "apt-get update && apt-get install -y python3");
  CHECK(python_install_command("ID=alpine\n") == "apk add python3");
  CHECK(python_install_command("ID='fedora'\n") == "dnf install -y python3");
  CHECK(python_install_command("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n") == "dnf install -y python3");
  CHECK(python_install_command("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n") == "zypper install -y python3");
  CHECK(python_install_command("ID=arch") == "pacman -Sy --noconfirm python");
  CHECK(python_install_command("ID=unknown\n").empty());
  CHECK(python_install_command("").empty());
  CHECK(python_install_command("ID=\n=\n\"").empty());
}

TEST_CASE("driver command: Python runs the bootstrap with the directory of the drivers") {
  const Programs programs;
  const std::string python = programs.add("python3");
  const auto command = agent::driver_command({.name = "main", .interpreter = python, .idle_limit = milliseconds(1500)},
                                             "/bin/sh", "/state/drivers_x", programs.search());
  REQUIRE(command);
  REQUIRE(command->argv.size() == 4);
  CHECK(command->argv[0] == python);
  CHECK(command->argv[1] == "-c");
  CHECK(command->argv[2].find("import dockbridge_driver") != std::string::npos);
  CHECK(command->argv[3] == "/state/drivers_x");
  using Variables = std::vector<std::pair<std::string, std::string>>;
  CHECK(command->environment == Variables{{"DOCKBRIDGE_PYTHON_IPYTHON", "auto"}, {"DOCKBRIDGE_IDLE_LIMIT_MS", "1500"}});
  const auto once =
      agent::driver_command({.interpreter = python, .may_use_ipython = false}, "", "/d", programs.search());
  REQUIRE(once);
  CHECK(once->environment == Variables{{"DOCKBRIDGE_PYTHON_IPYTHON", "never"}, {"DOCKBRIDGE_PYTHON_ONCE", "1"}});
}

TEST_CASE("driver command: a shell session needs a shell") {
  const Programs programs;
  const wire::CodeSession session{.kind = wire::CodeKind::shell, .name = "main"};
  const auto command = agent::driver_command(session, "/bin/dash", "/d", programs.search());
  REQUIRE(command);
  REQUIRE(command->argv.size() == 5);
  CHECK(command->argv[0] == "/bin/dash");
  CHECK(command->argv[3] == "sh");
  CHECK(command->argv[4] == "/d");
  const auto without = agent::driver_command(session, "", "/d", programs.search());
  REQUIRE_FALSE(without);
  CHECK(without.error().code == ErrorCode::no_shell);
}
