#include "support/container.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sstream>

#include "support/program.hpp"

namespace dockbridge::test {

Container::Container(const std::string& image, const std::vector<std::string>& options) {
  static std::atomic<int> counter{0};
  m_name = fmt::format("dockbridge-test-{}-{}", ::getpid(), ++counter);
  std::vector<std::string> argv = {"docker", "run", "--detach", "--name", m_name, "--workdir", "/app"};
  const auto is_at_app = [](const std::string& option) { return option.find("/app") != std::string::npos; };
  const bool is_shared = std::getenv("DOCKBRIDGE_TEST_UNSHARED") == nullptr;
  if (is_shared && std::none_of(options.begin(), options.end(), is_at_app)) {
    std::filesystem::permissions(m_workspace.path(), std::filesystem::perms::all);  // for any user of the container
    argv.insert(argv.end(), {"--volume", m_workspace.path().string() + ":/app"});
  }
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), {image, "sleep", "infinity"});
  run_ok(argv);
}

Container::~Container() {
#ifdef __SANITIZE_ADDRESS__
  // The agent's processes have no stderr that a test could see, and some of them are replaced when they die.
  const std::string report = run({"docker", "exec", m_name, "sh", "-c", "cat /tmp/dockbridge-asan.*"}).out;
  CHECK_MESSAGE(report.empty(), report);
#endif
  run({"docker", "rm", "--force", "--volumes", m_name});
}

std::string Container::sh(const std::string& script) const {
  return run_ok({"docker", "exec", m_name, "sh", "-c", script});
}

int Container::zombies() const {
  int count = 0;
  std::istringstream lines(run_ok({"docker", "top", m_name, "-eo", "pid,stat,comm"}));
  for (std::string line; std::getline(lines, line);) {
    count += line.find(" Z") != std::string::npos ? 1 : 0;
  }
  return count;
}

std::vector<int> Container::pids_of(const std::string& name) const {
  std::vector<int> pids;
  std::istringstream lines(run_ok({"docker", "top", m_name, "-eo", "pid,comm,args"}));
  std::string header;
  std::getline(lines, header);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(name) != std::string::npos) {
      pids.push_back(std::stoi(line));
    }
  }
  return pids;
}

}  // namespace dockbridge::test
