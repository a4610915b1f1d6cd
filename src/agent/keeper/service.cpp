#include "agent/keeper/service.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <string>
#include <string_view>

#include "agent/keeper/keeper.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

constexpr int k_backlog = 16;
constexpr std::size_t k_score_bytes = 16;
/// Makes commands the first victims when the container runs out of memory, not their keepers.
constexpr std::string_view k_command_oom_score = "500";

std::string oom_score() {
  return read_file_at(AT_FDCWD, "/proc/self/oom_score_adj", k_score_bytes).value_or("0");
}

/// Where this may not be set, the kernel's own choice is as good.
void set_oom_score(std::string_view score) {
  const Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  (void)write_all(file.get(), score);
}

/// All signals wait, and none is ignored: a command would inherit that. SIGCHLD is read from the descriptor.
Fd block_signals() {
  for (const int ignored_by_session : {SIGPIPE, SIGCHLD}) {
    ::signal(ignored_by_session, SIG_DFL);
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
               fmt::format("{}\n{}\n{}", error.code, error.message, error.next_step));
}

/// Where other sessions than the keeper's own reach it, for as long as it lives. Without one its commands run and are
/// recorded all the same; only other sessions cannot reach them.
class Listener {
 public:
  explicit Listener(int directory_fd)
      : m_directory_fd(directory_fd),
        m_name(fmt::format("{}{}_{}", k_keeper_prefix, ::getpid(), unix_milliseconds_now())) {
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un address = socket_address(directory_fd, m_name);
    if (socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::listen(socket.get(), k_backlog) == 0) {
      m_socket = std::move(socket);
    } else {
      m_name.clear();
    }
  }
  ~Listener() {
    if (m_socket) {
      ::unlinkat(m_directory_fd, m_name.c_str(), 0);
    }
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

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
  const Listener listener(directory.get());
  const Keeper::Surroundings surroundings{directory.get(), signals.get(), listener.fd(), listener.name()};
  const std::string own_score = oom_score();
  while (link) {
    // Set before there is anything to do, and inherited: a command's start is not held up by it.
    set_oom_score(k_command_oom_score);
    listener.send_away_until_readable(link.get());
    auto assignment = receive_assignment(link.get());
    if (assignment && !*assignment) {
      break;
    }
    if (!assignment) {
      tell_failure(link.get(), assignment.error());
      continue;
    }
    Keeper keeper(std::move(**assignment), surroundings);
    const auto started = keeper.start();
    if (!started) {
      tell_failure(link.get(), started.error());
      continue;
    }
    set_oom_score(own_score);
    link = keeper.run(std::move(link));
    if (link) {
      send_control(link.get(), static_cast<std::uint8_t>(Answer::free), 0);
    }
  }
  return 0;
}

}  // namespace dockbridge::agent
