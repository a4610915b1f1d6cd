#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/session/identity.hpp"
#include "agent/session/session.hpp"
#include "agent/session/shell.hpp"
#include "agent/session/survivors.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

/// What the emulator in the keeper understands.
constexpr const char* k_terminal_kind = "xterm-256color";

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& other) { return other.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

/// This process's environment with `account`'s variables and then `block` ("NAME=value" entries, each ended by NUL)
/// over it. SHELL is there as in a terminal; without it bash looks it up in the user database each time it starts.
Result<std::vector<std::string>> environment_with(const std::string& shell, const std::optional<Account>& account,
                                                  bool on_terminal, std::string_view block) {
  std::vector<std::string> entries;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(k_process_variable)) {
      entries.emplace_back(*variable);
    }
  }
  if (!shell.empty() && std::getenv("SHELL") == nullptr) {
    set_variable(entries, "SHELL", shell);
  }
  if (on_terminal) {
    set_variable(entries, "TERM", k_terminal_kind);
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
      return fail(ErrorCode::bad_request, "An environment entry is not NAME=value");
    }
    set_variable(entries, entry.substr(0, equals), entry.substr(equals + 1));
  }
  return entries;
}

/// The command's whole input: /dev/null if it is empty, else a file without a name. Neither has to be fed, and the end
/// of the file ends the input.
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

/// A start request, read as a whole before anything is made: a bad one leaves no record and no process behind.
struct StartOrder {
  std::string command;
  std::optional<std::string> input;
  Meta meta;
  Assignment assignment;
};

Result<StartOrder> read_order(const wire::Frame& frame, const std::string& shell) {
  const json& head = frame.head;
  const auto command_bytes = head.at("commandBytes").get<std::size_t>();
  const auto environment_bytes = head.at("environmentBytes").get<std::size_t>();
  if (command_bytes > frame.body.size() || environment_bytes > frame.body.size() - command_bytes) {
    return fail(ErrorCode::bad_request, "The parts of the body exceed the body");
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
    order.assignment.child.identity = account->identity;
  }
  auto environment = environment_with(shell, account, head.contains("terminal"),
                                      std::string_view(frame.body).substr(command_bytes, environment_bytes));
  if (!environment) {
    return fail(environment.error());
  }
  order.assignment.child.environment = std::move(*environment);
  order.assignment.child.cwd = expand_home(head.at("cwd").get<std::string>(), account ? account->home : own_home());
  order.assignment.max_runtime = milliseconds(head.at("maxRuntimeMs").get<std::int64_t>());
  order.assignment.output_limit = head.value("outputLimit", std::uint64_t{0});
  order.assignment.child.nice = head.value("nice", 0);
  Meta& meta = order.meta;
  meta.command = utf8_prefix(order.command, k_command_preview_bytes);
  meta.cwd = order.assignment.child.cwd;
  meta.owner = head.at("owner").get<std::string>();
  meta.rationale = utf8_prefix(head.at("rationale").get<std::string>(), k_command_preview_bytes);
  meta.started = now();
  meta.call = head.value("call", "");
  return order;
}

/// What the command needs on disk before it can start.
Result<void> store_files(StartOrder& order, const std::string& shell, int directory_fd) {
  if (needs_script(shell, order.command)) {
    if (order.assignment.child.identity) {
      return fail(ErrorCode::command_too_long, "A command over 128 KiB cannot run as another user",
                  "Write it to a file that this user can read, and run that");
    }
    if (auto written = replace_file_at(directory_fd, script_name(order.assignment.process), order.command); !written) {
      return written;
    }
  }
  if (order.input) {
    auto file = input_file(directory_fd, order.assignment.process + ".in", *order.input);
    if (!file) {
      return fail(file.error());
    }
    order.assignment.stdin_file = std::move(*file);
  }
  return {};
}

/// The highest number among the processes of an owner that are recorded.
std::uint64_t highest_recorded(const StateDirectory& state, const std::string& owner) {
  std::uint64_t highest = 0;
  state.visit([&](const std::string&, const Result<Record>& record) {
    highest = record && record->meta.owner == owner ? std::max(highest, record->meta.number) : highest;
  });
  return highest;
}

}  // namespace

Result<void> Session::start(std::uint64_t request, const wire::Frame& frame) {
  auto id = process_id_of(frame.head);
  if (!id) {
    return fail(id.error());
  }
  const bool keyed = frame.head.contains("call");
  if (const auto known = keyed ? m_state.namesake(*id) : std::nullopt) {
    return join(request, *known, frame.head);
  }
  auto waiter = read_waiter(request, *id, frame.head);
  auto order = waiter ? read_order(frame, m_shell) : fail(waiter.error());
  if (!order) {
    return fail(order.error());
  }
  auto arguments = command_arguments(m_shell, order->command, m_state.path_of(script_name(*id)));
  if (!arguments) {
    return fail(arguments.error());
  }
  order->assignment.child.argv = std::move(*arguments);
  order->assignment.process = *id;
  order->assignment.child.environment.push_back(fmt::format("{}={}", k_process_variable, *id));
  order->assignment.watch_input = waiter->input;
  if (frame.head.contains("terminal")) {
    const auto size = terminal_size_of(frame.head);
    if (!size) {
      return fail(size.error());
    }
    order->assignment.terminal = *size;
  }
  auto above = frame.head.value("above", std::uint64_t{0});
  if (m_numbers.highest(order->meta.owner) == 0) {
    above = std::max(above, highest_recorded(m_state, order->meta.owner));  // the index may have been deleted
  }
  order->meta.number = m_numbers.assign(order->meta.owner, *id, above);
  auto journal = m_state.create(*id, order->meta);
  if (!journal && keyed && journal.error().code == ErrorCode::process_exists) {
    return join(request, *id, frame.head);  // another session was faster
  }
  if (!journal) {
    return fail(journal.error());
  }
  order->assignment.journal = std::move(*journal);
  auto link =
      store_files(*order, m_shell, m_state.fd()).and_then([&] { return m_keepers.hand_over(order->assignment); });
  if (!link) {
    m_state.remove(*id);
    return fail(link.error());
  }
  auto& process = *(m_processes[*id] = std::make_unique<Process>());
  process.id = *id;
  process.record.meta = std::move(order->meta);
  process.input_watched = waiter->input ? k_watch_input : 0;
  process.has_own_keeper = true;
  attach(process, std::move(*link));
  if (waiter->pattern || waiter->known) {
    (void)process.link->watch_growth();  // a keeper reports only what it is asked for
  }
  m_waiters.push_back(std::move(*waiter));
  ++m_started_since_prune;
  return {};
}

}  // namespace dockbridge::agent
