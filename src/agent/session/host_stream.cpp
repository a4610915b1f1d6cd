#include "agent/session/host_stream.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "wire/operation.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::agent {

namespace {

/// Size of the replies in the queue above which no request is handled.
constexpr std::size_t k_max_outgoing = 8 * 1024 * 1024;
/// Bytes that are read before any request is handled. More than a stream buffers while the container is paused.
constexpr std::size_t k_max_read_ahead = 1024 * 1024;
/// Capacity of stdout if it is a pipe, so that one write takes a whole reply.
constexpr int k_pipe_bytes = 1024 * 1024;

void set_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

HostStream::HostStream(EventLoop& loop, Handler handle)
    : m_loop(loop), m_handle(std::move(handle)), m_last_received(Clock::now()) {}

void HostStream::open(const nlohmann::json& greeting) {
  set_nonblocking(STDIN_FILENO);
  set_nonblocking(STDOUT_FILENO);
  ::fcntl(STDOUT_FILENO, F_SETPIPE_SZ, k_pipe_bytes);  // without permission, long replies need several writes
  m_loop.add(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { read_requests(); });
  m_outgoing.append(wire::k_magic);
  send_frame(greeting, {});
}

void HostStream::read_requests() {
  std::array<char, 64 * 1024> buffer;
  std::size_t total = 0;
  ssize_t got = 0;
  do {
    got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    m_reader.feed({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
    total += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  } while (got == static_cast<ssize_t>(buffer.size()) && total < k_max_read_ahead);
  const bool has_ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (total > 0) {
    m_last_received = Clock::now();
  }
  const auto queued = queue_requests();
  handle_requests();
  m_is_open = m_is_open && !has_ended && queued;
}

/// Splits the input into requests.
Result<void> HostStream::queue_requests() {
  while (true) {
    auto frame = m_reader.next_raw();
    if (!frame || !*frame) {
      return frame ? Result<void>() : fail(frame.error());
    }
    auto route = wire::route_of((*frame)->head());
    if (!route) {
      return fail(route.error());
    }
    if (route->operation == wire::Operation::cancel) {
      // A malformed cancellation is rejected when it is handled.
      const auto cancelled =
          wire::parse_bounded((*frame)->head(), wire::k_max_head_depth).and_then([](const nlohmann::json& head) {
            return wire::message_from<wire::CancelRequest>(head, ErrorCode::bad_request);
          });
      std::erase_if(m_requests, [&](const HostRequest& it) { return cancelled && it.route.id == cancelled->request; });
    }
    m_requests.push_back({std::move(*route), std::move(**frame)});
  }
}

void HostStream::handle_requests() {
  while (m_is_open && m_outgoing.size() < k_max_outgoing && !m_requests.empty()) {
    HostRequest request = std::move(m_requests.front());
    m_requests.pop_front();
    m_handle(std::move(request));
  }
}

void HostStream::switch_to(const Fd& line) {
  if (!m_outgoing.empty()) {
    close();
    return;
  }
  // These stay open, so that the exec counts as running.
  m_engine_streams = {Fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)), Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0))};
  m_loop.remove(STDIN_FILENO);
  ::dup2(line.get(), STDIN_FILENO);
  ::dup2(line.get(), STDOUT_FILENO);
  m_loop.add(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { read_requests(); });
}

void HostStream::close_if_silent(Clock::time_point now) {
  m_is_open = m_is_open && now - m_last_received <= wire::k_session_silence_limit;
}

Clock::time_point HostStream::silence_deadline() const {
  return m_last_received + wire::k_session_silence_limit + milliseconds(1);
}

void HostStream::forward(std::string_view frame) {
  m_outgoing.append(frame);
  flush();
}

void HostStream::send_frame(const nlohmann::json& head, std::string_view body) {
  wire::append_frame(m_outgoing, head, body);
  flush();
}

void HostStream::flush() {
  std::size_t written = 0;
  while (written < m_outgoing.size()) {
    const ssize_t got = ::write(STDOUT_FILENO, m_outgoing.data() + written, m_outgoing.size() - written);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && errno != EAGAIN) {
      close();
      return;
    }
    if (got < 0) {
      break;
    }
    written += static_cast<std::size_t>(got);
  }
  m_outgoing.erase(0, written);
  if (!m_outgoing.empty() && !m_is_stdout_watched) {
    m_loop.add(STDOUT_FILENO, EPOLLOUT, [this](std::uint32_t) {
      flush();
      handle_requests();
    });
    m_is_stdout_watched = true;
  } else if (m_outgoing.empty() && m_is_stdout_watched) {
    m_loop.remove(STDOUT_FILENO);
    m_is_stdout_watched = false;
  }
  m_loop.change(STDIN_FILENO, m_outgoing.size() < k_max_outgoing ? EPOLLIN : 0U);
}

}  // namespace dockbridge::agent
