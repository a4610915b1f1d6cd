#include "agent/keeper/service.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "agent/keeper/keeper.hpp"
#include "agent/keeper/out_of_memory.hpp"
#include "agent/record.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/socket_address.hpp"

namespace dockbridge::agent {

namespace {

constexpr int k_backlog = 16;
/// The kernel kills commands before their keepers when the container runs out of memory.
constexpr std::string_view k_command_oom_score = "500";

/// Blocks all signals and ignores none, because a command inherits that. Returns a descriptor that reports SIGCHLD.
Fd block_signals() {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  return Fd(::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK));
}

void send_failure(int link, const Error& error) {
  send_control(link, static_cast<std::uint8_t>(Answer::start_failed), 0,
               fmt::format("{}\n{}\n{}", name_of(error.code), error.message, error.next_step));
}

/// Socket on which other sessions than the first one connect to a keeper.
class Listener {
 public:
  explicit Listener(int directory_fd) : m_directory_fd(directory_fd) { open(); }
  ~Listener() {
    if (m_socket) {
      ::unlinkat(m_directory_fd, m_name.c_str(), 0);
    }
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Retries if it could not be opened before because the disk was full.
  void open() {
    if (m_socket) {
      return;
    }
    m_name = fmt::format("{}{}_{}", k_keeper_prefix, ::getpid(), unix_milliseconds_now());
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un address = socket_address(m_directory_fd, m_name);
    if (socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::listen(socket.get(), k_backlog) == 0) {
      m_socket = std::move(socket);
    }
  }
  [[nodiscard]] int fd() const { return m_socket.get(); }
  [[nodiscard]] const std::string& name() const { return m_name; }

  /// Closes all connections until `link` or `signals` is readable. There is no process at this time, so they are too
  /// late.
  void reject_until_readable(int link, int signals) const {
    std::array<pollfd, 3> polled = {pollfd{link, POLLIN, 0}, pollfd{m_socket.get(), POLLIN, 0},
                                    pollfd{signals, POLLIN, 0}};
    while (polled[0].revents == 0 && polled[2].revents == 0) {
      ::poll(polled.data(), polled.size(), -1);
      if (polled[1].revents != 0) {
        const Fd too_late(::accept4(m_socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      }
    }
  }

 private:
  int m_directory_fd;
  std::string m_name;
  Fd m_socket;
};

/// What a keeper has prepared for its next command.
struct Prepared {
  Result<Streams> pipes;
  std::optional<WarmChild> child{};  ///< has its own pipes
};

/// Runs one command to its end, if it can be started. Returns the link if the keeper can get another command.
Fd run_command(Result<Assignment> assignment, Prepared prepared, const Keeper::Context& context, Fd link) {
  if (!assignment) {
    send_failure(link.get(), assignment.error());
    return link;
  }
  if (context.listener < 0) {
    send_failure(link.get(), {ErrorCode::state_not_writable, "Cannot create a socket in the state directory"});
    return link;
  }
  auto& pipes = prepared.pipes;
  if (!pipes && !(pipes = open_pipes())) {
    send_failure(link.get(), pipes.error());
    return link;
  }
  Keeper keeper(std::move(*assignment), context);
  const auto started = prepared.child ? keeper.adopt(std::move(*prepared.child)) : keeper.start(std::move(*pipes));
  if (!started) {
    send_failure(link.get(), started.error());
    const bool is_free = ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
    return is_free ? std::move(link) : Fd();
  }
  return keeper.run(std::move(link));
}

/// Reaps the warm child if it has ended. What it has started ends with the keeper.
void forget_ended_child(int link, int signals, Prepared& prepared) {
  signalfd_siginfo info{};
  [[maybe_unused]] const ssize_t got = ::read(signals, &info, sizeof info);
  while (const pid_t ended = ::waitpid(-1, nullptr, WNOHANG)) {
    if (ended < 0) {
      return;
    }
    if (prepared.child && ended == prepared.child->pid) {
      prepared.child.reset();
      send_control(link, static_cast<std::uint8_t>(Answer::child_ended), 0);
    }
  }
}

/// Starts the command of an assignment without a process.
void prepare_child(int link, Assignment assignment, Prepared& prepared) {
  if (prepared.pipes && !prepared.child) {
    if (auto started = start_warm_child(std::move(assignment.child), std::move(*prepared.pipes))) {
      prepared.child = std::move(*started);
    }
    prepared.pipes = open_pipes();  // used if the child ends early
  }
  if (!prepared.child) {
    send_control(link, static_cast<std::uint8_t>(Answer::child_ended), 0);
  }
}

/// Receives an assignment with a process. Returns false if the session has ended.
bool wait_for_assignment(int link, int signals, const Listener& listener, Prepared& prepared,
                         Result<Assignment>& assignment) {
  while (true) {
    listener.reject_until_readable(link, prepared.child ? signals : -1);
    if (prepared.child) {
      forget_ended_child(link, signals, prepared);
    }
    const Received received = receive_assignment(link, assignment);
    if (received != Received::packet) {
      if (received == Received::hangup) {
        return false;
      }
      continue;
    }
    if (!assignment || !assignment->process.empty()) {
      return true;
    }
    prepare_child(link, std::move(*assignment), prepared);
  }
}

}  // namespace

int serve_as_keeper(Fd link, const char* state_path) {
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "dockbridge-keep");
  ::umask(022);
  const Fd directory(::open(state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd signals = block_signals();
  if (!directory || !signals) {
    return 1;
  }
  Listener listener(directory.get());
  const std::string own_score = own_oom_score();
  while (link) {
    // Done in advance, so that it does not delay the start of a command. The command inherits the score.
    set_oom_score(k_command_oom_score);
    Prepared prepared{open_pipes()};
    Result<Assignment> assignment;
    if (!wait_for_assignment(link.get(), signals.get(), listener, prepared, assignment)) {
      break;
    }
    listener.open();
    link = run_command(std::move(assignment), std::move(prepared),
                       {directory.get(), signals.get(), listener.fd(), listener.name(), own_score}, std::move(link));
  }
  return 0;
}

}  // namespace dockbridge::agent
