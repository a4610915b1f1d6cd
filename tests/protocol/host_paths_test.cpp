#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "support/program.hpp"
#include "support/temporary_directory.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
namespace fs = std::filesystem;

namespace {

/// A host directory with a workspace that the container can write to.
struct Host {
  TemporaryDirectory world;
  fs::path workspace = world / "workspace";

  Host() { fs::create_directory(workspace); }
  /// Runs the program with these arguments and empty input until it exits.
  [[nodiscard]] Finished start(std::vector<std::string> arguments,
                               const std::map<std::string, std::string>& environment = {}) const {
    arguments.insert(arguments.begin(), {"/bin/sh", "-c", "exec \"$@\" < /dev/null", "sh", program_path(),
                                         "--docker-host", "unix:///nonexistent/docker.sock"});
    return run(arguments, environment);
  }
  [[nodiscard]] std::vector<std::string> sharing(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--workspace", workspace.string()});
    return arguments;
  }
};

void put(const fs::path& path, const std::string& content) {
  std::ofstream(path) << content;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

bool names(const Finished& finished, const std::string& part) {
  CAPTURE(finished.err);
  return finished.err.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("start: an --allow-host-path that is not a directory is an error") {
  const Host host;
  const Finished missing = host.start({"--allow-host-path", (host.world / "none").string()});
  CHECK(missing.exit_code == 2);
  CHECK(names(missing, "No such file or directory"));
  CHECK(names(missing, "--allow-host-path"));
  put(host.world / "file", "x");
  const Finished file = host.start({"--allow-host-path", (host.world / "file").string()});
  CHECK(file.exit_code == 2);
  CHECK(names(file, "Not a directory"));
}

TEST_CASE("start: --allow-host-path rejects a symbolic link in the workspace") {
  const Host host;
  fs::create_directory(host.world / "private");
  fs::create_symlink(host.world / "private", host.workspace / "planted");
  fs::create_directory(host.workspace / "data");
  fs::create_symlink(host.workspace / "data", host.world / "outer");
  const Finished planted = host.start(host.sharing({"--allow-host-path", (host.workspace / "planted").string()}));
  CHECK(planted.exit_code == 2);
  CHECK(names(planted, (host.workspace / "planted").string()));
  CHECK(host.start(host.sharing({"--allow-host-path", (host.workspace / "data").string()})).exit_code == 0);
  CHECK(host.start(host.sharing({"--allow-host-path", (host.world / "outer").string()})).exit_code == 0);
}

TEST_CASE("start: config and token files in the workspace are rejected") {
  const Host host;
  const fs::path inside = host.workspace / "config.json";
  put(inside, "{\"log-level\": \"warn\"}");
  put(host.world / "config.json", "{\"log-level\": \"warn\"}");
  const Finished config = host.start(host.sharing({"--config", inside.string()}));
  CHECK(config.exit_code == 2);
  CHECK(names(config, inside.string()));
  CHECK(host.start(host.sharing({"--config", (host.world / "config.json").string()})).exit_code == 0);
  // A link from outside and a file below HOME are rejected too.
  fs::create_symlink(inside, host.world / "link.json");
  CHECK(host.start(host.sharing({"--config", (host.world / "link.json").string()})).exit_code == 2);
  fs::create_directories(host.workspace / ".config" / "dockbridge");
  put(host.workspace / ".config" / "dockbridge" / "config.json", "{}");
  CHECK(host.start(host.sharing({}), {{"HOME", host.workspace.string()}, {"XDG_CONFIG_HOME", ""}}).exit_code == 2);

  const std::string token = (host.workspace / "none" / "token").string();
  const Finished tokens = host.start(host.sharing({"--http", "127.0.0.1:0", "--stdio", "--token-file", token}));
  CHECK(tokens.exit_code == 2);
  CHECK(names(tokens, token));
  CHECK_FALSE(fs::exists(host.workspace / "none"));
  // Without HTTP the token file is not read.
  CHECK(host.start(host.sharing({"--token-file", token})).exit_code == 0);
}
