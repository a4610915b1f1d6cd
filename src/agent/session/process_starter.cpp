#include "agent/session/process_starter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/code/driver_command.hpp"
#include "agent/code/driver_files.hpp"
#include "agent/session/idempotency.hpp"
#include "agent/session/identity.hpp"
#include "agent/session/shell.hpp"
#include "agent/session/survivors.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

/// Kind of terminal that the screen process emulates.
constexpr const char* k_terminal_kind = "xterm-256color";

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& other) { return other.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

/// "" if the variable is not set.
std::string variable_in(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

/// This process's environment, overridden by the variables of `account` and then by those of `command`. SHELL is set as
/// in a terminal. Without it, bash looks it up in the user database each time it starts.
std::vector<std::string> environment_with(const std::string& shell, const std::optional<Account>& account,
                                          const wire::Command& command) {
  std::vector<std::string> entries;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(k_process_variable)) {
      entries.emplace_back(*variable);
    }
  }
  if (!shell.empty() && std::getenv("SHELL") == nullptr) {
    set_variable(entries, "SHELL", shell);
  }
  if (command.terminal) {
    set_variable(entries, "TERM", k_terminal_kind);
  }
  if (account) {
    set_variable(entries, "HOME", account->home);
    set_variable(entries, "USER", account->name);
    set_variable(entries, "LOGNAME", account->name);
  }
  for (const auto& [name, value] : command.environment) {
    set_variable(entries, name, value);
  }
  return entries;
}

/// The command's whole input: /dev/null if it is empty, else a file without a name. The input ends with the file, so
/// that the keeper does not have to write it to a pipe.
Result<Fd> input_file(int directory_fd, const std::string& name, std::string_view content) {
  if (content.empty()) {
    if (Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC)); null) {
      return null;
    }
  }
  Fd file(::openat(directory_fd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    return fail(errno_error("Cannot store the input"));
  }
  ::unlinkat(directory_fd, name.c_str(), 0);
  if (auto written = write_all(file.get(), content); !written) {
    return fail(written.error());
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// Everything that a start needs. It is complete before anything is created, so a bad request leaves no record and no
/// process.
struct StartOrder {
  Meta meta;
  Assignment assignment;
};

Result<StartOrder> make_order(const wire::Command& command, const std::string& shell) {
  const bool has_side_channel = command.has_side_channel || command.session;
  if (command.terminal && has_side_channel) {
    return fail(ErrorCode::bad_request, "A process on a terminal cannot have a side channel");
  }
  if (command.session && command.user) {
    return fail(ErrorCode::bad_request, "A code session runs as the user of the container");
  }
  StartOrder order;
  std::optional<Account> account;
  if (command.user) {
    auto found = find_account(*command.user);
    if (!found) {
      return fail(found.error());
    }
    account = std::move(*found);
    order.assignment.child.identity = account->identity;
  }
  order.assignment.process = command.id;
  order.assignment.child.environment = environment_with(shell, account, command);
  order.assignment.child.environment.push_back(fmt::format("{}={}", k_process_variable, command.id));
  order.assignment.child.cwd = expand_home(command.cwd, account ? account->home : own_home());
  order.assignment.child.nice = command.nice;
  order.assignment.max_runtime = command.max_runtime;
  order.assignment.output_limit = command.output_limit;
  order.assignment.terminal = command.terminal;
  order.assignment.has_side_channel = has_side_channel;
  Meta& meta = order.meta;
  meta.command = utf8_prefix(command.command, k_command_preview_bytes);
  meta.cwd = order.assignment.child.cwd;
  meta.owner = command.owner;
  meta.rationale = utf8_prefix(command.rationale, k_command_preview_bytes);
  meta.started = now();
  meta.call = command.call;
  if (command.session) {
    order.assignment.idle_limit = command.session->idle_limit;
    order.assignment.child.dies_with_keeper = true;
    meta.session = {command.session->kind, command.session->name};
  }
  return order;
}

/// Stores a long command as a script, and the command's input.
Result<void> store_files(Assignment& assignment, const wire::Command& command, const std::string& shell,
                         int directory_fd) {
  if (!command.session && needs_script(shell, command.command)) {
    if (assignment.child.identity) {
      return fail(ErrorCode::command_too_long, "A command over 128 KiB cannot run as another user",
                  "Write it to a file that this user can read, and run that");
    }
    if (auto written = replace_file_at(directory_fd, script_name(command.id), command.command); !written) {
      return written;
    }
  }
  if (command.input) {
    auto file = input_file(directory_fd, command.id + ".in", *command.input);
    if (!file) {
      return fail(file.error());
    }
    assignment.stdin_file = std::move(*file);
  }
  return {};
}

/// The highest number among the recorded processes of an owner.
std::uint64_t highest_recorded(const StateDirectory& state, const std::string& owner) {
  std::uint64_t highest = 0;
  state.visit([&](const std::string&, const Result<Record>& record) {
    highest = record && record->meta.owner == owner ? std::max(highest, record->meta.number) : highest;
  });
  return highest;
}

}  // namespace

ProcessStarter::ProcessStarter(StateDirectory& state, std::string shell, ProcessNumbers& numbers,
                               ProcessTable& processes, WaitList& waits, WaitRequests& wait_requests)
    : m_state(state),
      m_shell(std::move(shell)),
      m_numbers(numbers),
      m_processes(processes),
      m_waits(waits),
      m_wait_requests(wait_requests) {}

Result<void> ProcessStarter::start(std::uint64_t request, const wire::StartRequest& message) {
  const wire::Command& command = message.command;
  const std::string& id = command.id;
  const bool keyed = !command.call.empty();
  if (const auto known = keyed ? m_state.namesake(id) : std::nullopt) {
    return join(request, *known, message);
  }
  auto wait = Wait::make(message.wait, Clock::now());
  auto order = wait ? make_order(command, m_shell) : fail(wait.error());
  if (!order) {
    return fail(order.error());
  }
  if (auto chosen = choose_program(command, order->assignment.child); !chosen) {
    return chosen;
  }
  order->assignment.watch_input = message.wait.until.input;
  std::uint64_t above = message.above;
  if (m_numbers.highest(command.owner) == 0) {
    above = std::max(above, highest_recorded(m_state, command.owner));  // the index may have been deleted
  }
  order->meta.number = m_numbers.assign(command.owner, id, above);
  auto journal = m_state.create(id, order->meta);
  if (!journal && keyed && journal.error().code == ErrorCode::process_exists) {
    return join(request, id, message);  // another session was faster
  }
  if (!journal) {
    return fail(journal.error());
  }
  order->assignment.journal = std::move(*journal);
  const auto process = store_files(order->assignment, command, m_shell, m_state.fd()).and_then([&] {
    return m_processes.start(std::move(order->meta), order->assignment);
  });
  if (!process) {
    m_state.remove(id);
    return fail(process.error());
  }
  m_waits.add_started(request, std::move(*wait), **process);
  return {};
}

Result<void> ProcessStarter::choose_program(const wire::Command& command, ChildSpec& child) {
  if (!command.session) {
    auto arguments = command_arguments(m_shell, command.command, m_state.path_of(script_name(command.id)));
    if (arguments) {
      child.argv = std::move(*arguments);
    }
    return arguments ? Result<void>() : fail(arguments.error());
  }
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
  return {};
}

Result<void> ProcessStarter::join(std::uint64_t request, const std::string& id, const wire::StartRequest& message) {
  const auto record = m_state.read(id);
  if (!record && record.error().code == ErrorCode::process_expired) {
    return fail(ErrorCode::process_expired, "Output of the command with this idempotency key has expired",
                "Use a new key to run it again");
  }
  if (!record) {
    return fail(record.error());
  }
  if (record->meta.call != message.command.call || record->meta.owner != message.command.owner) {
    return fail(key_conflict());
  }
  return m_wait_requests.wait_for(request, id, message.wait);
}

}  // namespace dockbridge::agent
