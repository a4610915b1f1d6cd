#include "agent/keeper/side_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "agent/control/packets.hpp"
#include "agent/record.hpp"
#include "wire/side_channel.hpp"

namespace dockbridge::agent {

namespace {

/// Exceeds what the socket can hold.
constexpr int k_max_drained_pieces = 64;

}  // namespace

Result<SideSocket> open_side_socket() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(ErrorCode::cannot_start, "The container has no file descriptors left for a process");
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return SideSocket{Fd(ends[0]), Fd(ends[1])};
}

void limit_idle_time(const Fd& commands_end, milliseconds limit) {
  const auto whole = std::chrono::duration_cast<seconds>(limit);
  const timeval timeout{static_cast<time_t>(whole.count()),
                        static_cast<suseconds_t>(std::chrono::microseconds(limit - whole).count())};
  ::setsockopt(commands_end.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
}

SideChannel::SideChannel(int directory_fd, const std::string& process, SpoolCaps caps, CommandOutput& output,
                         ActivityMonitor& activity)
    : m_output(output), m_activity(activity), m_spool(directory_fd, side_name(process), caps) {}

short SideChannel::awaited_events() const {
  return static_cast<short>(m_queue.empty() ? POLLIN : POLLIN | POLLOUT);
}

void SideChannel::serve(Clock::time_point now) {
  read_piece(now);
  write_queue();
}

void SideChannel::drain(Clock::time_point now) {
  for (int i = 0; i < k_max_drained_pieces && read_piece(now); ++i) {
  }
}

std::size_t SideChannel::write(std::string_view bytes, Clock::time_point now) {
  if (!m_socket) {
    return 0;
  }
  const std::size_t count = std::min(bytes.size(), k_max_pending_input - std::min(k_max_pending_input, m_queue.size()));
  m_queue += bytes.substr(0, count);
  m_activity.note_activity(now);
  write_queue();
  return count;
}

/// The other streams are read after the piece: what the command wrote to them before is then in their spools.
bool SideChannel::read_piece(Clock::time_point now) {
  static std::array<char, sizeof(wire::SidePieceHeader) + wire::k_max_side_piece> buffer;
  if (!m_socket) {
    return false;
  }
  const ssize_t got = ::read(m_socket.get(), buffer.data() + sizeof(wire::SidePieceHeader), wire::k_max_side_piece);
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      m_socket.reset();
    }
    return false;
  }
  m_output.drain(now);
  wire::SidePieceHeader header;
  header.size = static_cast<std::uint32_t>(got);
  header.out = m_output.out_total();
  header.err = m_output.err_total();
  std::memcpy(buffer.data(), &header, sizeof header);
  m_spool.append({buffer.data(), sizeof header + header.size});
  m_activity.note_activity(now);
  return true;
}

void SideChannel::write_queue() {
  if (!m_socket || m_queue.empty()) {
    return;
  }
  const ssize_t written = ::send(m_socket.get(), m_queue.data(), m_queue.size(), MSG_NOSIGNAL);
  if (written > 0) {
    m_queue.erase(0, static_cast<std::size_t>(written));
  } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
    m_queue.clear();
    m_socket.reset();
  }
}

}  // namespace dockbridge::agent
