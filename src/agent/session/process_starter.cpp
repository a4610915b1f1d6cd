#include "agent/session/process_starter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/session/command_environment.hpp"
#include "agent/session/idempotency.hpp"
#include "agent/session/identity.hpp"
#include "agent/session/shell.hpp"
#include "agent/session/survivors.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

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
  if (command.terminal && (command.has_side_channel || command.session)) {
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
  order.assignment.has_side_channel = command.has_side_channel;
  Meta& meta = order.meta;
  meta.command = utf8_prefix(command.command, k_command_preview_bytes);
  meta.cwd = order.assignment.child.cwd;
  meta.owner = command.owner;
  meta.rationale = utf8_prefix(command.rationale, k_command_preview_bytes);
  meta.started = now();
  meta.call = command.call;
  if (command.session) {
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
                               ProcessTable& processes, DriverStarts& drivers, MemoryGuard& memory, WaitList& waits,
                               WaitRequests& wait_requests)
    : m_state(state),
      m_shell(std::move(shell)),
      m_numbers(numbers),
      m_processes(processes),
      m_drivers(drivers),
      m_memory(memory),
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
  if (auto chosen = choose_program(command, order->assignment); !chosen) {
    return chosen;
  }
  order->assignment.watch_input = message.wait.until.input;
  std::uint64_t above = message.above;
  if (m_numbers.highest(command.owner) == 0) {
    above = std::max(above, highest_recorded(m_state, command.owner));  // the index may have been deleted
  }
  auto warm = command.session ? m_drivers.take_warm(command, order->assignment) : std::nullopt;
  if (warm) {
    order->meta.session->is_warm = true;
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
    return m_processes.start(std::move(order->meta), order->assignment, std::move(warm));
  });
  if (!process) {
    m_state.remove(id);
    return fail(process.error());
  }
  if (command.session) {
    m_drivers.note_start(request, command, order->assignment);
    m_memory.note_session();
  }
  m_waits.add_started(request, std::move(*wait), **process);
  return {};
}

Result<void> ProcessStarter::choose_program(const wire::Command& command, Assignment& assignment) const {
  if (command.session) {
    return m_drivers.complete(command, assignment);
  }
  auto arguments = command_arguments(m_shell, command.command, m_state.path_of(script_name(command.id)));
  if (!arguments) {
    return fail(arguments.error());
  }
  assignment.child.argv = std::move(*arguments);
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
