#include "agent/code/driver_command.hpp"

#include "agent/code/driver_files.hpp"

namespace dockbridge::agent {

namespace {

/// Starts the driver so that messages about commands look as those of `bash -c`.
constexpr std::string_view k_shell_start = R"(. "$1/shell.sh"; shift; eval "$__dockbridge_start")";

/// bash, or sh. Messages of a shell begin with this name.
std::string shell_name(const std::string& shell) {
  return shell.ends_with("/bash") ? "bash" : "sh";
}

void add_idle_limit(const wire::CodeSession& session, DriverCommand& command) {
  if (session.idle_limit.count() > 0) {
    command.environment.emplace_back("DOCKBRIDGE_IDLE_LIMIT_MS", std::to_string(session.idle_limit.count()));
  }
}

}  // namespace

Result<DriverCommand> driver_command(const wire::CodeSession& session, const std::string& shell,
                                     const std::string& directory, const InterpreterSearch& search) {
  if (session.kind == wire::CodeKind::shell) {
    if (shell.empty()) {
      return fail(ErrorCode::no_shell, "The container has no shell");
    }
    DriverCommand command{{shell, "-c", std::string(k_shell_start), shell_name(shell), directory}, {}};
    add_idle_limit(session, command);
    return command;
  }
  auto interpreter = find_python(session.interpreter, search);
  if (!interpreter) {
    return fail(interpreter.error());
  }
  DriverCommand command;
  command.argv = {std::move(*interpreter), "-c", std::string(driver_file("bootstrap.py")), directory};
  command.environment.emplace_back("DOCKBRIDGE_PYTHON_IPYTHON", session.may_use_ipython ? "auto" : "never");
  if (session.name.empty()) {
    command.environment.emplace_back("DOCKBRIDGE_PYTHON_ONCE", "1");
  }
  add_idle_limit(session, command);
  return command;
}

}  // namespace dockbridge::agent
