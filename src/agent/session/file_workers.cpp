#include "agent/session/file_workers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include "agent/files/change/write_journal.hpp"
#include "agent/launch.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_max_workers = 16;
/// Workers that search at the same time, each on all cores. The others serve short requests.
constexpr std::size_t k_max_searches = 4;
/// A decoder may use half a gigabyte.
constexpr std::size_t k_max_decoders = 2;
constexpr std::size_t k_max_idle_workers = 2;
/// Interval between checks for unfinished changes of an earlier session. It doubles.
constexpr milliseconds k_min_check_interval{100};
constexpr milliseconds k_max_check_interval{60'000};
/// Time in which a process whose socket is closed should end.
constexpr int k_exit_patience_ms = 200;
constexpr std::size_t k_max_waiting_bytes = 64ULL * 1024 * 1024;

}  // namespace

FileWorkers::~FileWorkers() {
  for (const Worker& worker : m_workers) {
    if (worker.request && worker.is_killable) {
      kill(worker);
    }
  }
}

void FileWorkers::recover(int state_fd) {
  m_state_fd = state_fd;
  check_leftovers();
}

void FileWorkers::recover_leftovers() {
  if (!WriteJournal::has_leftovers(m_state_fd)) {
    return;
  }
  for (auto worker = m_workers.begin(); worker != m_workers.end();) {
    const auto next = std::next(worker);
    if (!worker->request && worker->staging.empty()) {
      drop(worker);  // the next request goes to the new worker, which recovers first
    }
    worker = next;
  }
  launch();
}

void FileWorkers::check_leftovers() {
  const bool is_needed = WriteJournal::has_leftovers(m_state_fd) || WriteJournal::is_change_under_way(m_state_fd);
  recover_leftovers();
  if (m_timer) {
    m_loop.remove(m_timer.get());
    m_timer.reset();
  }
  if (!is_needed) {
    return;
  }
  m_check_interval = std::clamp(m_check_interval * 2, k_min_check_interval, k_max_check_interval);
  m_timer.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  itimerspec when{};
  when.it_value.tv_sec = m_check_interval.count() / 1000;
  when.it_value.tv_nsec = m_check_interval.count() % 1000 * 1'000'000;
  if (m_timer && ::timerfd_settime(m_timer.get(), 0, &when, nullptr) == 0) {
    m_loop.add(m_timer.get(), EPOLLIN, [this](std::uint32_t) { check_leftovers(); });
  }
}

void FileWorkers::recover_from_crash(const Worker& dead) {
  // Its locks are released when it ends.
  pollfd ended{dead.process.get(), POLLIN, 0};
  ::poll(&ended, 1, k_exit_patience_ms);
  m_check_interval = k_min_check_interval;
  check_leftovers();
}

bool FileWorkers::may_start(const FileRequest& request) const {
  const auto count = [&](auto&& what) {
    return static_cast<std::size_t>(std::count_if(m_workers.begin(), m_workers.end(), what));
  };
  const wire::ServedBy kind = request.properties().served_by;
  const std::size_t of_kind = count([&](const Worker& worker) { return worker.request && worker.kind == kind; });
  if (kind == wire::ServedBy::search) {
    return of_kind < k_max_searches;
  }
  if (kind == wire::ServedBy::decoder && of_kind >= k_max_decoders) {
    return false;
  }
  const std::string& staging = request.staging;
  // A transfer that has begun continues, because other requests may wait for its worker.
  const bool has_begun = !staging.empty() && count([&](const Worker& worker) { return worker.staging == staging; }) > 0;
  return has_begun ||
         count([](const Worker& worker) { return worker.request || !worker.staging.empty(); }) < k_max_workers;
}

void FileWorkers::submit(FileRequest request) {
  if (request.operation == wire::Operation::file_abandon) {
    abandon(std::move(request));
  } else if (may_start(request)) {
    start(std::move(request));
  } else if (m_waiting_bytes + request.frame.body().size() > k_max_waiting_bytes) {
    m_replies.send_error(request.id, {ErrorCode::agent_busy, "Too many file requests are waiting"});
  } else {
    m_waiting_bytes += request.frame.body().size();
    m_waiting.push_back(std::move(request));
  }
}

/// A busy worker cannot receive this request. It is dropped after its current request, and then removes the files that
/// it has collected.
void FileWorkers::abandon(FileRequest request) {
  const auto worker = std::find_if(m_workers.begin(), m_workers.end(), [&](const Worker& it) {
    return !request.staging.empty() && it.staging == request.staging;
  });
  if (worker != m_workers.end() && !worker->request) {
    start(std::move(request));
    return;
  }
  if (worker != m_workers.end()) {
    worker->is_abandoned = true;
  }
  m_replies.send(request.id, nlohmann::json::object());
}

void FileWorkers::start_waiting() {
  for (auto next = m_waiting.begin(); next != m_waiting.end();) {
    if (!may_start(*next)) {
      ++next;
      continue;
    }
    FileRequest request = std::move(*next);
    next = m_waiting.erase(next);
    m_waiting_bytes -= request.frame.body().size();
    start(std::move(request));
  }
}

void FileWorkers::start(FileRequest request) {
  const auto worker = find_for(request.staging);
  if (worker == m_workers.end()) {
    m_replies.send_error(request.id,
                         {ErrorCode::cannot_fork, "Cannot start a process: the container's process limit is reached"});
    return;
  }
  worker->request = request.id;
  worker->kind = request.properties().served_by;
  worker->is_killable = request.properties().cancellable;
  worker->staging = std::move(request.staging);
  worker->outgoing = std::move(request.frame).take_bytes();
  write_to(worker);
}

FileWorkers::Position FileWorkers::find_for(const std::string& staging) {
  const auto found = std::find_if(m_workers.begin(), m_workers.end(),
                                  [&](const Worker& worker) { return !worker.request && worker.staging == staging; });
  if (found != m_workers.end() || staging.empty()) {
    return found != m_workers.end() ? found : launch();
  }
  const auto idle = std::find_if(m_workers.begin(), m_workers.end(),
                                 [](const Worker& worker) { return !worker.request && worker.staging.empty(); });
  return idle != m_workers.end() ? idle : launch();
}

FileWorkers::Position FileWorkers::launch() {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return m_workers.end();
  }
  Worker worker{Fd(sockets[0]), Fd()};
  const Fd workers_end(sockets[1]);
  const Launch what{workers_end.get(), workers_end.get(), {k_files_role, m_state_path.c_str()}};
  pid_t pid = launch_beside(what);
  if (pid < 0 && errno != EAGAIN) {
    pid = launch_below(what);
  }
  if (pid < 0) {
    return m_workers.end();
  }
  worker.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ::fcntl(worker.socket.get(), F_SETFL, O_NONBLOCK);
  m_loop.add(worker.socket.get(), EPOLLIN, [this, fd = worker.socket.get()](std::uint32_t) { read_from(fd); });
  return m_workers.insert(m_workers.end(), std::move(worker));
}

void FileWorkers::write_to(Position worker) {
  std::string& bytes = worker->outgoing;
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t got = ::send(worker->socket.get(), bytes.data() + written, bytes.size() - written, MSG_NOSIGNAL);
    if (got < 0 && errno != EINTR) {
      break;  // the next read detects a dead worker
    }
    written += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  bytes.erase(0, written);
  m_loop.change(worker->socket.get(), bytes.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void FileWorkers::read_from(int fd) {
  const auto worker =
      std::find_if(m_workers.begin(), m_workers.end(), [&](const Worker& it) { return it.socket.get() == fd; });
  if (worker == m_workers.end()) {
    return;
  }
  if (!worker->outgoing.empty()) {
    write_to(worker);
  }
  std::array<char, 64 * 1024> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  Result<std::optional<wire::RawFrame>> frame =
      fail(ErrorCode::worker_gone, "The process that handled the file request died");
  if (got > 0) {
    worker->reader.feed({buffer.data(), static_cast<std::size_t>(got)});
    frame = worker->reader.next_raw();
  }
  // A malformed reply is not passed on, because the host would drop the connection.
  auto route = frame && *frame ? wire::route_of((*frame)->head()) : Result<wire::Route>();
  if (frame && *frame && route && route->id != worker->request) {
    route = fail(ErrorCode::protocol_violation, "A file worker answered another request");
  }
  if (!frame || !route) {
    const auto request = worker->request;
    if (request && !worker->is_killable && m_state_fd >= 0) {
      recover_from_crash(*worker);
    }
    drop(worker);
    if (request) {
      m_replies.send_error(*request, frame ? route.error() : frame.error());
    }
    start_waiting();
  } else if (*frame) {
    finish(worker, **frame, *route);
  }
}

void FileWorkers::finish(Position worker, const wire::RawFrame& frame, const wire::Route& route) {
  m_replies.forward(frame.bytes());
  worker->request.reset();
  if (route.is_error || !route.is_staging) {
    worker->staging.clear();
  }
  const auto idle = std::count_if(m_workers.begin(), m_workers.end(),
                                  [](const Worker& it) { return !it.request && it.staging.empty(); });
  if (worker->is_abandoned || (worker->staging.empty() && static_cast<std::size_t>(idle) > k_max_idle_workers)) {
    drop(worker);  // the worker ends when its socket is closed
  }
  if (m_state_fd >= 0 && route.error_code == ErrorCode::half_written) {
    recover_leftovers();
  }
  start_waiting();
}

void FileWorkers::cancel(std::uint64_t request) {
  const auto waiting =
      std::find_if(m_waiting.begin(), m_waiting.end(), [&](const FileRequest& it) { return it.id == request; });
  if (waiting != m_waiting.end()) {
    m_waiting_bytes -= waiting->frame.body().size();
    m_waiting.erase(waiting);
  }
  const auto worker =
      std::find_if(m_workers.begin(), m_workers.end(), [&](const Worker& it) { return it.request == request; });
  // A request that changes files is completed.
  if (worker != m_workers.end() && worker->is_killable) {
    kill(*worker);
    drop(worker);
    start_waiting();
  }
}

void FileWorkers::kill(const Worker& worker) {
  ::syscall(SYS_pidfd_send_signal, worker.process.get(), SIGKILL, nullptr, 0);
}

void FileWorkers::drop(Position worker) {
  m_loop.remove(worker->socket.get());
  m_workers.erase(worker);
}

}  // namespace dockbridge::agent
