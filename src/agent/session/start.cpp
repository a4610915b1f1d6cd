#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>

#include "agent/keeper/keeper.hpp"
#include "agent/session/identity.hpp"
#include "agent/session/session.hpp"
#include "agent/session/shell.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& other) { return other.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

/// This process's environment with `account`'s variables and then `block` ("NAME=value" entries, each ended by NUL)
/// over it.
Result<std::vector<std::string>> environment_with(const std::optional<Account>& account, std::string_view block) {
  std::vector<std::string> entries;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    entries.emplace_back(*variable);
  }
  if (account) {
    set_variable(entries, "HOME", account->home);
    set_variable(entries, "USER", account->name);
    set_variable(entries, "LOGNAME", account->name);
  }
  while (!block.empty()) {
    const std::string entry(block.substr(0, block.find('\0')));
    block.remove_prefix(std::min(block.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail("bad_request", "an environment entry is not NAME=value");
    }
    set_variable(entries, entry.substr(0, equals), entry.substr(equals + 1));
  }
  return entries;
}

/// The command's whole input as a file without a name: no reader has to be fed, and end of file comes by itself.
Result<Fd> input_file(int directory_fd, std::string_view content) {
  Fd file(::openat(directory_fd, "stdin", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    return fail(errno_error("cannot store the input"));
  }
  ::unlinkat(directory_fd, "stdin", 0);
  if (auto written = write_all(file.get(), content); !written) {
    return fail(written.error());
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// Like fork, but the child belongs to this process's parent (the container runtime), which reaps it.
pid_t fork_sibling() {
  const long pid = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  return pid >= 0 || errno == EAGAIN ? static_cast<pid_t>(pid) : ::fork();
}

/// A start request, read as a whole before anything is made: a bad one leaves no folder and no process behind.
struct StartOrder {
  std::string command;
  std::optional<std::string> input;
  KeeperSpec keeper;
};

Result<StartOrder> read_order(const wire::Frame& frame) {
  const json& head = frame.head;
  const auto command_bytes = head.at("commandBytes").get<std::size_t>();
  const auto environment_bytes = head.at("environmentBytes").get<std::size_t>();
  if (command_bytes > frame.body.size() || environment_bytes > frame.body.size() - command_bytes) {
    return fail("bad_request", "the parts of the body are longer than the body");
  }
  StartOrder order;
  order.command = frame.body.substr(0, command_bytes);
  if (head.at("stdin").get<std::string>() == "body") {
    order.input = frame.body.substr(command_bytes + environment_bytes);
  }
  std::optional<Account> account;
  if (const auto user = head.find("user"); user != head.end()) {
    auto found = find_account(user->get<std::string>());
    if (!found) {
      return fail(found.error());
    }
    account = std::move(*found);
    order.keeper.child.identity = account->identity;
  }
  auto environment = environment_with(account, std::string_view(frame.body).substr(command_bytes, environment_bytes));
  if (!environment) {
    return fail(environment.error());
  }
  order.keeper.child.environment = std::move(*environment);
  order.keeper.child.cwd = head.at("cwd").get<std::string>();
  order.keeper.max_runtime = milliseconds(head.at("maxRuntimeMs").get<std::int64_t>());
  Meta& meta = order.keeper.meta;
  meta.command = utf8_prefix(order.command, k_command_preview_bytes);
  meta.cwd = order.keeper.child.cwd;
  meta.owner = head.at("owner").get<std::string>();
  meta.rationale = utf8_prefix(head.at("rationale").get<std::string>(), k_command_preview_bytes);
  meta.started_at_ms = unix_milliseconds_now();
  return order;
}

/// What the command needs on disk before it can start.
Result<void> store_files(StartOrder& order, const std::string& shell, int directory_fd) {
  if (needs_script(shell, order.command)) {
    if (order.keeper.child.identity) {
      return fail("command_too_long", "a command over 128 KiB cannot be run as another user",
                  "Put it into a file that this user can read, and run that");
    }
    if (auto written = replace_file_at(directory_fd, "script", order.command); !written) {
      return written;
    }
  }
  if (order.input) {
    auto file = input_file(directory_fd, *order.input);
    if (!file) {
      return fail(file.error());
    }
    order.keeper.stdin_file = std::move(*file);
  }
  return {};
}

}  // namespace

Result<void> Session::start(std::uint64_t request, const wire::Frame& frame) {
  auto id = process_id_of(frame.head);
  if (!id) {
    return fail(id.error());
  }
  Waiter waiter = read_waiter(request, *id, frame.head);
  auto order = read_order(frame);
  if (!order) {
    return fail(order.error());
  }
  auto arguments = command_arguments(m_shell, order->command, m_state.path_of(*id) + "/script");
  if (!arguments) {
    return fail(arguments.error());
  }
  order->keeper.child.argv = std::move(*arguments);
  auto directory = m_state.create(*id);
  if (!directory) {
    return fail(directory.error());
  }
  const Meta meta = order->keeper.meta;
  auto link = store_files(*order, m_shell, directory->get()).and_then([&] {
    return fork_keeper(std::move(order->keeper), directory->get());
  });
  if (!link) {
    m_state.remove(*id);
    return fail(link.error());
  }
  auto& process = *(m_processes[*id] = std::make_unique<Process>());
  process.id = *id;
  process.path = m_state.path_of(*id);
  process.meta = meta;
  process.directory = std::move(*directory);
  attach(process, std::move(*link));
  m_waiters.push_back(std::move(waiter));
  return {};
}

Result<KeeperLink> Session::fork_keeper(KeeperSpec spec, int directory_fd) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets.data()) != 0) {
    return fail(errno_error("cannot connect to a keeper"));
  }
  Fd own_end(sockets[0]);
  spec.link.reset(sockets[1]);
  spec.directory.reset(::fcntl(directory_fd, F_DUPFD_CLOEXEC, 0));
  const pid_t pid = fork_sibling();
  if (pid == 0) {
    static_cast<void>(own_end.release());  // the keeper closes everything that came along
    Keeper(std::move(spec)).run();
  }
  if (pid < 0) {
    return fail("cannot_fork", "cannot start a process in the container: its process limit is reached",
                "End some processes, or raise the container's pids limit");
  }
  return KeeperLink(std::move(own_end));
}

}  // namespace dockbridge::agent
