#include "agent/session/session.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "agent/session/direct_line.hpp"
#include "agent/session/identity.hpp"
#include "agent/session/shell.hpp"
#include "wire/error_message.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

/// Answers that wait for a host that does not read; beyond this no further request is read.
constexpr std::size_t k_max_outgoing = 8 * 1024 * 1024;
/// Bytes that are read before any request is handled. More than a stream buffers while the container is paused.
constexpr std::size_t k_max_read_ahead = 1024 * 1024;
/// A whole answer, so that it goes out in one piece.
constexpr int k_pipe_bytes = 1024 * 1024;
constexpr milliseconds k_prune_interval{60'000};
constexpr int k_prune_starts = 500;
/// How often what runs is looked at for having stored too much.
constexpr milliseconds k_size_interval{5000};
/// How long a session with processes sleeps at most: who is woken later than that was frozen.
constexpr milliseconds k_longest_sleep{1000};

void set_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Session::Session(StateDirectory state, wire::Retention retention)
    : m_state(std::move(state)),
      m_retention(retention),
      m_files(m_loop, m_state.path(),
              [this](std::string_view frame) {
                m_outgoing.append(frame);
                flush();
              }),
      m_watches(m_loop, [this](std::uint64_t request,
                               bool changed) { answer(request, wire::to_json(wire::WatchAnswer{changed})); }),
      m_shell(find_shell()),
      m_last_heard(Clock::now()),
      m_next_prune(Clock::now()) {}

int Session::run() {
  ::prctl(PR_SET_NAME, "dockbridge-sess");
  set_nonblocking(STDIN_FILENO);
  set_nonblocking(STDOUT_FILENO);
  ::fcntl(STDOUT_FILENO, F_SETPIPE_SZ, k_pipe_bytes);  // where it may not be, long answers go out in more pieces
  m_loop.add(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { read_requests(); });
  greet();
  m_keepers.prepare();
  m_state.prepare();
  m_files.recover(m_state.fd());
  while (!m_done) {
    const bool something = m_loop.run_once(next_timeout());
    const auto now = Clock::now();
    // Only when nothing is there to be read: after the container was paused, the host's pings are still in the pipe.
    if (!something && now - m_last_heard > wire::k_session_silence_limit) {
      m_done = true;
    }
    check_waiters();
    m_watches.check();
    advance_greps();
    tidy_up(now);
  }
  m_state.let_go_of_journal();
  return 0;
}

void Session::tidy_up(Clock::time_point now) {
  bool is_due = now >= m_next_prune || m_started_since_prune >= k_prune_starts;
  if (!is_due && now >= m_next_size_check) {
    is_due = m_state.stored_bytes() > m_retention.bytes;
    m_next_size_check = now + k_size_interval;
  }
  if (is_due) {
    m_state.prune(m_retention, agent::now());
    m_next_prune = now + k_prune_interval;
    m_started_since_prune = 0;
  }
}

void Session::greet() {
  utsname system{};
  ::uname(&system);
  m_outgoing.append(wire::k_magic);
  wire::append_frame(m_outgoing, wire::greeting_of({.version = DOCKBRIDGE_VERSION,
                                                    .machine = system.machine,
                                                    .shell = m_shell,
                                                    .state_directory = m_state.path(),
                                                    .home = own_home(),
                                                    .uid = ::geteuid(),
                                                    .pid = ::getpid()}));
  flush();
}

void Session::read_requests() {
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
    m_last_heard = Clock::now();
  }
  const auto queued = queue_requests();
  handle_requests();
  m_done = m_done || has_ended || !queued;
}

Result<void> Session::queue_requests() {
  while (true) {
    auto frame = m_reader.next_raw();
    if (!frame || !*frame) {
      return frame ? Result<void>() : fail(frame.error());
    }
    auto route = wire::route_of((*frame)->head());
    if (!route) {
      return fail(route.error());
    }
    if (wire::operation_named(route->op.value_or("")) == wire::Operation::cancel) {
      // A malformed cancellation is refused when it is handled.
      const auto cancelled =
          wire::parse_bounded((*frame)->head(), wire::k_max_head_depth).and_then([](const json& head) {
            return wire::message_from<wire::CancelRequest>(head, ErrorCode::bad_request);
          });
      std::erase_if(m_requests,
                    [&](const PendingRequest& it) { return cancelled && it.route.id == cancelled->request; });
    }
    m_requests.push_back({std::move(*route), std::move(**frame)});
  }
}

/// Stops while too many replies wait to be sent; `on_writable` then continues.
void Session::handle_requests() {
  while (!m_done && m_outgoing.size() < k_max_outgoing && !m_requests.empty()) {
    PendingRequest pending = std::move(m_requests.front());
    m_requests.pop_front();
    handle(std::move(pending));
  }
}

void Session::handle(PendingRequest pending) {
  const wire::Route& route = pending.route;
  if (!route.id || !route.op) {
    m_done = true;
    return;
  }
  const std::uint64_t request = *route.id;
  const auto operation = wire::operation_named(*route.op);
  if (!operation) {
    refuse(request, {ErrorCode::unknown_operation, "Unknown operation '" + *route.op + "'"});
    return;
  }
  if (wire::properties_of(*operation).server != wire::Server::session) {
    m_files.submit({request, *operation, route.staging, std::move(pending.frame)});
    return;
  }
  const auto head = wire::parse_bounded(pending.frame.head(), wire::k_max_head_depth);
  const auto read = [&](const wire::Field& fields) { return serve(request, *operation, fields, pending.frame.body()); };
  auto served = head ? wire::read_fields(*head, ErrorCode::bad_request, read) : fail(head.error());
  if (const auto done = served ? std::move(*served) : fail(served.error()); !done) {
    refuse(request, done.error());
  }
}

Result<void> Session::serve(std::uint64_t request, wire::Operation operation, const wire::Field& head,
                            std::string_view body) {
  using enum wire::Operation;
  switch (operation) {
    case start:
      return this->start(request, wire::from_json<wire::StartRequest>(head, body));
    case wait:
      return this->wait(request, wire::from_json<wire::WaitRequest>(head));
    case read:
      return this->read(request, wire::from_json<wire::ReadRequest>(head));
    case grep:
      return this->grep(request, wire::from_json<wire::GrepRequest>(head));
    case input:
      return this->input(request, wire::from_json<wire::InputRequest>(head, body));
    case keys:
      return this->keys(request, wire::from_json<wire::KeysRequest>(head));
    case taken:
      return this->taken(request, wire::from_json<wire::TakenRequest>(head));
    case screen:
      return this->screen(request, wire::from_json<wire::ScreenRequest>(head));
    case resize:
      return this->resize(request, wire::from_json<wire::ResizeRequest>(head));
    case signal:
      return this->signal(request, wire::from_json<wire::SignalRequest>(head));
    case end:
      return this->end(request, wire::from_json<wire::EndRequest>(head));
    case line:
      return this->line(request, wire::from_json<wire::LineRequest>(head));
    case file_watch:
      return watch_file(request, wire::from_json<wire::WatchRequest>(head));
    case list:
      this->list(request, wire::from_json<wire::ListRequest>(head));
      return {};
    case cancel:
      this->cancel(wire::from_json<wire::CancelRequest>(head).request);
      answer(request, json::object());
      return {};
    case ping:
      answer(request, json::object());
      return {};
    default:
      return fail(ErrorCode::internal_error, "A file operation reached the session");
  }
}

/// The answer is the last that goes by the engine.
Result<void> Session::line(std::uint64_t request, const wire::LineRequest& message) {
  auto line = join_line(message);
  if (!line) {
    return fail(line.error());
  }
  answer(request, json::object());
  if (!m_outgoing.empty()) {
    m_done = true;
    return {};
  }
  // Kept open, so that the engine sees a program at work.
  m_engine_streams = {Fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)), Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0))};
  m_loop.remove(STDIN_FILENO);
  ::dup2(line->get(), STDIN_FILENO);
  ::dup2(line->get(), STDOUT_FILENO);
  m_loop.add(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { read_requests(); });
  return {};
}

void Session::cancel(std::uint64_t request) {
  m_files.cancel(request);
  m_watches.cancel(request);
  cancel_wait(request);
  std::erase_if(m_greps, [&](const Grep& grep) { return grep.request == request; });
}

Result<void> Session::watch_file(std::uint64_t request, const wire::WatchRequest& message) {
  return m_watches.add(request, message.root, message.path, message.modified_at_ms, Clock::now() + message.timeout);
}

void Session::answer(std::uint64_t request, json head, std::string_view body) {
  head["id"] = request;
  wire::append_frame(m_outgoing, head, body);
  flush();
}

void Session::refuse(std::uint64_t request, const Error& error) {
  answer(request, {{"error", wire::to_json(error)}});
}

void Session::flush() {
  std::size_t written = 0;
  while (written < m_outgoing.size()) {
    const ssize_t got = ::write(STDOUT_FILENO, m_outgoing.data() + written, m_outgoing.size() - written);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && errno != EAGAIN) {
      m_done = true;
      return;
    }
    if (got < 0) {
      break;
    }
    written += static_cast<std::size_t>(got);
  }
  m_outgoing.erase(0, written);
  if (!m_outgoing.empty() && !m_stdout_watched) {
    m_loop.add(STDOUT_FILENO, EPOLLOUT, [this](std::uint32_t) { on_writable(); });
    m_stdout_watched = true;
  } else if (m_outgoing.empty() && m_stdout_watched) {
    m_loop.remove(STDOUT_FILENO);
    m_stdout_watched = false;
  }
  m_loop.change(STDIN_FILENO, m_outgoing.size() < k_max_outgoing ? EPOLLIN : 0U);
}

void Session::on_writable() {
  flush();
  handle_requests();
}

milliseconds Session::next_timeout() const {
  if (!m_greps.empty()) {
    return milliseconds::zero();
  }
  auto next = m_last_heard + wire::k_session_silence_limit + milliseconds(1);
  next = std::min(next, m_next_prune);
  next = std::min(next, m_watches.next_check().value_or(next));
  if (!m_processes.empty()) {
    next = std::min(next, Clock::now() + k_longest_sleep);
  }
  for (const Waiter& waiter : m_waiters) {
    next = std::min(next, waiter.next_check());
  }
  return std::max(milliseconds::zero(), std::chrono::ceil<milliseconds>(next - Clock::now()));
}

}  // namespace dockbridge::agent
