#include "container.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <stdexcept>

#include "child.hpp"

namespace dockbridge::bench {

namespace {

constexpr const char* k_longest_life_seconds = "180";
constexpr milliseconds k_process_patience{5'000};

}  // namespace

Container::Container(const std::string& image, const std::vector<std::string>& options)
    : m_name(fmt::format("dockbridge-bench-{}", ::getpid())),
      m_workspace(std::filesystem::temp_directory_path() / m_name) {
  std::filesystem::create_directory(m_workspace);
  std::vector<std::string> command = {
      "docker", "run", "--detach", "--init", "--rm", "--name", m_name, "--volume", m_workspace.string() + ":/app"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {image, "sleep", k_longest_life_seconds});
  run(command);
}

Container::~Container() {
  try {
    run({"docker", "rm", "--force", "--volumes", m_name});
    std::filesystem::remove_all(m_workspace);
  } catch (const std::exception& error) {
    fmt::print(stderr, "dockbridge-bench: cannot remove container {}: {}\n", m_name, error.what());
  }
}

void Container::copy_in(const std::string& host_path, const std::string& path) const {
  run({"docker", "cp", "--quiet", host_path, m_name + ":" + path});
}

std::vector<std::string> Container::exec_command(const std::vector<std::string>& argv) const {
  std::vector<std::string> command = {"docker", "exec", m_name};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

std::string Container::shell() const {
  std::string path = run(exec_command({"sh", "-c", "command -v bash || command -v sh"}));
  path.erase(path.find_last_not_of('\n') + 1);
  return path;
}

std::vector<ContainerProcess> Container::processes() const {
  std::istringstream lines(run({"docker", "top", m_name, "-eo", "pid,stat,comm"}));
  std::vector<ContainerProcess> all;
  std::string header;
  std::getline(lines, header);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    ContainerProcess process;
    if (fields >> process.pid >> process.state >> process.name) {
      all.push_back(std::move(process));
    }
  }
  return all;
}

int Container::zombies() const {
  const auto all = processes();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [](const auto& process) { return process.state.starts_with('Z'); }));
}

pid_t Container::pid_of(const std::string& name) const {
  const auto deadline = Deadline::after(k_process_patience);
  while (!deadline.passed()) {
    auto found = processes();
    std::erase_if(found, [&](const auto& process) { return !process.name.starts_with(name); });
    if (found.size() == 1) {
      return found.front().pid;
    }
  }
  throw std::runtime_error(fmt::format("expected exactly one process '{}' in the container", name));
}

}  // namespace dockbridge::bench
