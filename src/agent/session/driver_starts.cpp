#include "agent/session/driver_starts.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "agent/code/driver_command.hpp"
#include "agent/code/driver_files.hpp"
#include "agent/session/command_environment.hpp"
#include "agent/session/identity.hpp"
#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// Variables that an interpreter or libc reads when a program starts. A warm interpreter has done that already.
constexpr std::array<std::string_view, 8> k_early_variables = {"PYTHON", "LD_",     "LC_",  "LANG",
                                                               "TZ",     "MALLOC_", "HOME", "GLIBC_"};

bool is_early(std::string_view name) {
  return std::any_of(k_early_variables.begin(), k_early_variables.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_usable_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// Whether a running driver can get everything that the command has. Without a usable directory, a start as usual
/// reports the error.
bool fits_running_driver(const wire::Command& command, const Assignment& assignment) {
  const auto is_late = [](const auto& variable) {
    return !is_early(variable.first) && is_valid_utf8(variable.first) && is_valid_utf8(variable.second);
  };
  return command.session->kind == wire::CodeKind::python && command.nice == 0 && command.input.value_or("").empty() &&
         std::all_of(command.environment.begin(), command.environment.end(), is_late) &&
         is_valid_utf8(assignment.child.cwd) && is_usable_directory(assignment.child.cwd);
}

/// The request `adopt` of the driver, see docs/agent-protocol.md.
std::string adoption(const wire::Command& command, const Assignment& assignment) {
  nlohmann::json request = {{"op", "adopt"},
                            {"process", command.id},
                            {"cwd", assignment.child.cwd},
                            {"env", nlohmann::json::object()},
                            {"idle", command.session->idle_limit.count()},
                            {"once", command.session->name.empty()}};
  for (const auto& [name, value] : command.environment) {
    request["env"][name] = value;
  }
  return request.dump() + "\n";
}

}  // namespace

Result<void> DriverStarts::complete(const wire::Command& command, Assignment& assignment) const {
  ChildSpec& child = assignment.child;
  auto driver = driver_command(*command.session, m_shell, m_state.path_of(drivers_directory()),
                               {variable_in(child.environment, "PATH"), child.cwd, own_home()});
  if (!driver) {
    return fail(driver.error());
  }
  if (auto installed = install_drivers(m_state.fd()); !installed) {
    return installed;
  }
  child.argv = std::move(driver->argv);
  for (const auto& [name, value] : driver->environment) {
    set_variable(child.environment, name, value);
  }
  child.dies_with_keeper = true;
  assignment.has_side_channel = true;
  assignment.idle_limit = command.session->idle_limit;
  return {};
}

std::optional<KeeperLink> DriverStarts::take_warm(const wire::Command& command, Assignment& assignment) {
  if (m_warm.empty() || !fits_running_driver(command, assignment)) {
    return std::nullopt;
  }
  auto link = m_warm.take(early_driver(*command.session, assignment));
  if (link) {
    assignment.greeting = adoption(command, assignment);
  }
  return link;
}

void DriverStarts::note_start(std::uint64_t request, const wire::Command& command, const Assignment& assignment) {
  if (command.session->kind == wire::CodeKind::python) {
    m_warm.keep(early_driver(*command.session, assignment), command.session->warm_interpreters, request);
  }
}

ChildSpec DriverStarts::early_driver(const wire::CodeSession& session, const Assignment& assignment) const {
  ChildSpec child;
  child.argv = assignment.child.argv;
  child.environment = environment_with(m_shell, std::nullopt, {});
  set_variable(child.environment, "DOCKBRIDGE_PYTHON_IPYTHON", session.may_use_ipython ? "auto" : "never");
  set_variable(child.environment, "DOCKBRIDGE_PYTHON_WARM", "1");
  child.cwd = "/";
  child.dies_with_keeper = true;
  return child;
}

}  // namespace dockbridge::agent
