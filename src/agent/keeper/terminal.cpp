#include "agent/keeper/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "agent/control/screen_packets.hpp"
#include "agent/launch.hpp"

namespace dockbridge::agent {

namespace {

/// A program whose output crashes the emulator more often gets no screen.
constexpr int k_max_starts = 20;
constexpr milliseconds k_max_end_wait{1000};

bool set_size(int fd, wire::TerminalSize size) {
  winsize window{};
  window.ws_col = size.columns;
  window.ws_row = size.rows;
  return ::ioctl(fd, TIOCSWINSZ, &window) == 0;
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(wire::TerminalSize size, int directory_fd, std::string name) {
  Fd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  const int unlocked = 0;
  if (!master || ::ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0 || !set_size(master.get(), size)) {
    return fail(ErrorCode::no_terminal, "The container has no terminals: /dev/ptmx cannot be used",
                "Run the command without tty, or mount /dev/pts in the container");
  }
  Fd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave) {
    return fail(ErrorCode::no_terminal, "The container's kernel cannot open the other end of a terminal",
                "Run the command without tty");
  }
  return std::unique_ptr<Terminal>(
      new Terminal(std::move(master), std::move(slave), size, directory_fd, std::move(name)));
}

Terminal::Terminal(Fd master, Fd slave, wire::TerminalSize size, int directory_fd, std::string name)
    : m_master(std::move(master)),
      m_slave(std::move(slave)),
      m_size(size),
      m_directory_fd(directory_fd),
      m_name(std::move(name)) {
  start_screen();
}

void Terminal::start_screen() {
  m_screen.reset();
  m_backlog.clear();
  m_stores = 0;
  std::array<int, 2> sockets{};
  if (++m_starts > k_max_starts ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets.data()) != 0) {
    return;
  }
  Fd own(sockets[0]);
  const Fd other(sockets[1]);
  const std::string columns = std::to_string(m_size.columns);
  const std::string rows = std::to_string(m_size.rows);
  const std::string shown = std::to_string(m_shown);
  if (launch_beside({other.get(),
                     m_directory_fd,
                     {k_screen_role, m_name.c_str(), columns.c_str(), rows.c_str(), shown.c_str()}}) > 0) {
    m_screen = std::move(own);
  }
}

void Terminal::send(std::uint8_t order, std::uint32_t value, std::string_view payload) {
  if (m_screen && (has_backlog() || !send_control(m_screen.get(), order, value, payload))) {
    m_backlog.push_back({order, value, std::string(payload)});
  }
}

void Terminal::send_backlog() {
  while (m_screen && has_backlog()) {
    const Packet& next = m_backlog.front();
    if (!send_control(m_screen.get(), next.order, next.value, next.payload)) {
      return;
    }
    m_backlog.pop_front();
  }
}

bool Terminal::has_screen() {
  if (!m_screen) {
    start_screen();
  }
  return static_cast<bool>(m_screen);
}

void Terminal::show(std::string_view output) {
  m_shown += output.size();
  send(static_cast<std::uint8_t>(ScreenOrder::show), 0, output);
}

void Terminal::press(std::string_view keys) {
  if (m_screen) {
    m_presses.add();
  }
  send(static_cast<std::uint8_t>(ScreenOrder::press), 0, keys);
}

std::size_t Terminal::find_signal_key(std::string_view typed) const {
  termios modes{};
  if (::tcgetattr(m_slave.get(), &modes) != 0 || (modes.c_lflag & ISIG) == 0 || (modes.c_lflag & NOFLSH) != 0) {
    return std::string_view::npos;
  }
  const auto is_signal_key = [&](char key) {
    return key != _POSIX_VDISABLE &&
           (key == static_cast<char>(modes.c_cc[VINTR]) || key == static_cast<char>(modes.c_cc[VQUIT]) ||
            key == static_cast<char>(modes.c_cc[VSUSP]));
  };
  const auto last = std::find_if(typed.rbegin(), typed.rend(), is_signal_key);
  return last == typed.rend() ? std::string_view::npos : static_cast<std::size_t>(typed.rend() - last) - 1;
}

void Terminal::drop_input() {
  ::tcflush(m_slave.get(), TCIFLUSH);
}

void Terminal::resize(wire::TerminalSize size) {
  m_size = size;
  set_size(m_master.get(), size);
  send(static_cast<std::uint8_t>(ScreenOrder::resize), packed_size(size));
}

void Terminal::store() {
  m_stores += m_screen ? 1 : 0;
  send(static_cast<std::uint8_t>(ScreenOrder::store), 0);
}

void Terminal::store_at_end() {
  store();
  for (const auto deadline = Deadline::after(k_max_end_wait); m_screen && !deadline.passed();) {
    const auto wanted = static_cast<short>(has_backlog() ? POLLIN | POLLOUT : POLLIN);
    pollfd polled{m_screen.get(), wanted, 0};
    ::poll(&polled, 1, static_cast<int>(deadline.remaining().count()));
    send_backlog();
    if (receive(0).is_stored) {
      break;
    }
  }
  m_slave.reset();
}

Terminal::News Terminal::receive(std::size_t room) {
  News news;
  ControlPacket packet;
  Received received = Received::nothing;
  while (m_screen && (received = receive_control(m_screen.get(), packet)) == Received::packet) {
    switch (static_cast<ScreenReport>(packet.header.type)) {
      case ScreenReport::typed:
        // A program may send queries and never read the replies.
        news.typed += news.typed.size() + packet.payload.size() <= room ? packet.payload : "";
        break;
      case ScreenReport::pressed:
        news.typed += packet.payload + m_presses.take_first();
        break;
      case ScreenReport::stored:
        news.is_stored = --m_stores == 0;
        break;
    }
  }
  if (received == Received::hangup) {
    start_screen();
    news.is_stored = true;  // ends the wait of sessions that have asked for the screen
    news.typed += m_presses.take_all();
  }
  return news;
}

}  // namespace dockbridge::agent
