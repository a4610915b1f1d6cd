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
#include <string>
#include <string_view>

#include "agent/keeper/keeper.hpp"
#include "agent/keeper/out_of_memory.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"
#include "util/socket_address.hpp"

namespace dockbridge::agent {

namespace {

constexpr int k_backlog = 16;
/// Makes commands the first victims when the container runs out of memory, not their keepers.
constexpr std::string_view k_command_oom_score = "500";

/// All signals wait, and none is ignored, whoever started us: a command would inherit that. SIGCHLD is read from the
/// descriptor.
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

void tell_failure(int link, const Error& error) {
  send_control(link, static_cast<std::uint8_t>(Answer::start_failed), 0,
               fmt::format("{}\n{}\n{}", name_of(error.code), error.message, error.next_step));
}

/// Where other sessions than the keeper's own reach it, for as long as it lives.
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

  /// Tries again if it could not be opened before (the disk was full).
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

  /// There is no process to connect to: whoever comes is too late.
  void send_away_until_readable(int link) const {
    std::array<pollfd, 2> polled = {pollfd{link, POLLIN, 0}, pollfd{m_socket.get(), POLLIN, 0}};
    while (polled[0].revents == 0) {
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

/// Looks after one command to its end, if it can be started. Returns the link, if there can be another.
Fd keep(Result<Assignment> assignment, Result<Streams> pipes, const Keeper::Surroundings& surroundings, Fd link) {
  if (!assignment) {
    tell_failure(link.get(), assignment.error());
    return link;
  }
  if (surroundings.listener < 0) {
    tell_failure(link.get(), {ErrorCode::state_not_writable, "Cannot create a socket in the state directory"});
    return link;
  }
  if (!pipes && !(pipes = open_pipes())) {
    tell_failure(link.get(), pipes.error());
    return link;
  }
  Keeper keeper(std::move(*assignment), surroundings);
  if (const auto started = keeper.start(std::move(*pipes)); !started) {
    tell_failure(link.get(), started.error());
    const bool is_free = ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
    return is_free ? std::move(link) : Fd();
  }
  return keeper.run(std::move(link));
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
    // Before there is anything to do: a command's start is not held up by it. The score is inherited.
    set_oom_score(k_command_oom_score);
    auto pipes = open_pipes();
    Result<Assignment> assignment;
    Received received = Received::nothing;
    while (received == Received::nothing) {
      listener.send_away_until_readable(link.get());
      received = receive_assignment(link.get(), assignment);
    }
    if (received == Received::hangup) {
      break;
    }
    listener.open();
    link = keep(std::move(assignment), std::move(pipes),
                {directory.get(), signals.get(), listener.fd(), listener.name(), own_score}, std::move(link));
  }
  return 0;
}

}  // namespace dockbridge::agent
