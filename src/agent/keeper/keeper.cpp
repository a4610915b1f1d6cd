#include "agent/keeper/keeper.hpp"

#include <malloc.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "agent/keeper/input_judgement.hpp"
#include "agent/keeper/out_of_memory.hpp"
#include "agent/keeper/process_tree.hpp"
#include "agent/keeper/usage.hpp"

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_chunk_bytes = 32 * 1024;
/// More than a pipe can hold: what a command wrote before it ended is in its pipe when it is reaped.
constexpr std::size_t k_drain_bytes = 1024 * 1024;
constexpr std::size_t k_max_links = 64;
constexpr milliseconds k_kill_again{50};
constexpr milliseconds k_timeout_grace{2000};
constexpr milliseconds k_kill_patience{1000};

/// How long after the last sign of life a command is first looked at, and how seldom in the end.
constexpr milliseconds k_first_look{100};
constexpr milliseconds k_longest_look_interval{2000};
/// A poll that took so much longer than it should: the container was frozen.
constexpr milliseconds k_frozen{1000};
/// What a shell adds to a signal's number for its exit status.
constexpr int k_shell_signal_base = 128;
constexpr milliseconds k_output_grace{2000};
/// Interval between attempts to record an end after the disk was full.
constexpr milliseconds k_record_interval{1000};

bool is_readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace

Keeper::Keeper(Assignment assignment, const Surroundings& surroundings)
    : m_assignment(std::move(assignment)),
      m_out(surroundings.directory, out_name(m_assignment.process), m_assignment.caps),
      m_err(surroundings.directory, err_name(m_assignment.process), m_assignment.caps),
      m_surroundings(surroundings) {}

Result<void> Keeper::start(Streams streams) {
  if (m_assignment.terminal) {
    auto terminal = Terminal::open(*m_assignment.terminal, m_surroundings.directory, screen_name(m_assignment.process));
    if (!terminal) {
      return fail(terminal.error());
    }
    m_terminal = std::move(*terminal);
    auto on_terminal = open_on_terminal(*m_terminal);
    if (!on_terminal) {
      return fail(on_terminal.error());
    }
    streams = std::move(*on_terminal);
  }
  if (m_assignment.stdin_file) {
    streams.child_in = std::move(m_assignment.stdin_file);
    streams.in = m_terminal ? std::move(streams.in) : Fd();
  }
  ChildSpec& child = m_assignment.child;
  child.stdin_fd = streams.child_in.get();
  child.stdout_fd = streams.child_out.get();
  child.stderr_fd = streams.child_err.get();
  child.on_terminal = m_terminal != nullptr;
  if (child.identity) {
    // So that the command may open /dev/stdin, /dev/stdout and /dev/stderr.
    for (const int fd : {child.stdin_fd, child.stdout_fd, child.stderr_fd}) {
      [[maybe_unused]] const int given = ::fchown(fd, child.identity->uid, child.identity->gid);
    }
  }
  auto pid = start_child(child);
  if (!pid) {
    return fail(pid.error());
  }
  m_pid = *pid;
  note_activity();
  m_starvation.note(m_last_activity, {});  // its threads have waited for nothing before this
  m_out_pipe = std::move(streams.out);
  m_err_pipe = std::move(streams.err);
  m_stdin_pipe = std::move(streams.in);
  if (m_assignment.max_runtime.count() > 0) {
    m_runtime_ends = Clock::now() + m_assignment.max_runtime;
  }
  if (auto written = append(m_assignment.journal.get(), m_assignment.process,
                            Kept{m_pid, m_surroundings.socket, k_control_version});
      !written) {
    kill_all();
    return fail(ErrorCode::state_not_writable, written.error().message, "Free some disk space in the container");
  }
  return {};
}

/// What was started has no record, and must not stay.
void Keeper::kill_all() {
  for (const auto deadline = Deadline::after(k_kill_patience); !deadline.passed();) {
    signal_descendants(SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    pollfd ended{m_surroundings.signals, POLLIN, 0};
    if (errno == ECHILD || ::poll(&ended, 1, static_cast<int>(k_kill_again.count())) < 0) {
      return;
    }
  }
}

Fd Keeper::run(Fd first_link) {
  // That it runs is not told unasked: who only waits for the end is not woken before it.
  m_links.push_back(
      Link{std::move(first_link), true, true, false, m_assignment.watch_input ? k_watch_input : 0, false, {}});
  loop();
  const auto kept = std::find_if(m_links.begin(), m_links.end(),
                                 [](const Link& link) { return link.sent.header.value == k_keeper_is_free; });
  return kept == m_links.end() ? Fd() : std::move(kept->socket);
}

void Keeper::loop() {
  std::vector<pollfd> polled;
  while (m_phase != wire::Phase::closed || m_end_unrecorded) {
    polled.clear();
    const auto watch = [&](const Fd& fd, short events) { polled.push_back({fd ? fd.get() : -1, events, 0}); };
    polled.push_back({m_surroundings.signals, POLLIN, 0});
    polled.push_back({m_terminal && m_terminal->has_backlog() ? -1 : m_out_pipe.get(), POLLIN, 0});
    watch(m_err_pipe, POLLIN);
    // Who finds no room waits in the queue, and is not sent away.
    polled.push_back({m_links.size() < k_max_links ? m_surroundings.listener : -1, POLLIN, 0});
    polled.push_back({m_pending_input.empty() ? -1 : m_stdin_pipe.get(), POLLOUT, 0});
    polled.push_back({m_terminal ? m_terminal->screen_fd() : -1, screen_events(), 0});
    const std::size_t first_link = polled.size();
    for (const Link& link : m_links) {
      watch(link.socket, POLLIN);
    }
    wait_for_events(polled);
    // One read empties a pipe, or fills the buffer. Reading on would miss what was written to stderr in between.
    if (polled[1].revents != 0) {
      read_output(m_out_pipe, m_out, m_terminal ? k_chunk_bytes : 1);
    }
    if (polled[2].revents != 0) {
      read_output(m_err_pipe, m_err, 1);
    }
    if (polled[4].revents != 0) {
      write_input();
    }
    if (polled[5].revents != 0) {
      m_terminal->send_backlog();
      hear_screen();
    }
    for (std::size_t i = polled.size(); i-- > first_link;) {
      if (polled[i].revents == 0) {
        continue;
      }
      const auto link = m_links.begin() + static_cast<std::ptrdiff_t>(i - first_link);
      ControlPacket packet;
      const Received received = receive_control(link->socket.get(), packet);
      if (received == Received::hangup || (received == Received::packet && !obey(*link, packet))) {
        m_links.erase(link);
      }
    }
    if (polled[3].revents != 0) {
      accept_link();
    }
    if (polled[0].revents != 0) {
      reap();
    }
    check_timers();
    tell_watchers();
  }
}

short Keeper::screen_events() const {
  return static_cast<short>(m_terminal && m_terminal->has_backlog() ? POLLIN | POLLOUT : POLLIN);
}

/// What can wait for a command that ends at once.
void Keeper::settle() {
  m_settled = true;
  m_earlier_memory_kills = out_of_memory_kills();
  set_oom_score(m_surroundings.own_oom_score);
}

/// Time in which nothing could run does not count as run time. That it is no silence either is for sessions to see.
void Keeper::wait_for_events(std::vector<pollfd>& polled) {
  if (!std::exchange(m_has_polled, true) && ::poll(polled.data(), polled.size(), 0) > 0) {
    return;  // it may have ended, and then nothing is left to be done
  }
  if (!m_settled) {
    settle();
  }
  const int timeout = poll_timeout_ms();
  const auto began = Clock::now();
  ::poll(polled.data(), polled.size(), timeout);
  const auto overslept = Clock::now() - began - milliseconds(timeout);
  if (timeout >= 0 && overslept > k_frozen) {
    m_last_look += overslept;
    if (m_runtime_ends) {
      *m_runtime_ends += overslept;
    }
  }
}

int Keeper::poll_timeout_ms() const {
  std::optional<Clock::time_point> next;
  const auto consider = [&](Clock::time_point when) { next = next ? std::min(*next, when) : when; };
  if (m_runtime_ends) {
    consider(std::min(*m_runtime_ends, Clock::now() + k_frozen));
  }
  if (m_kill_at) {
    consider(*m_kill_at);
  }
  if (is_watched_for(k_watch_input | k_watch_answer)) {
    consider(m_last_look + m_look_interval);
  }
  if (m_end_unrecorded) {
    consider(m_next_record);
  }
  if (!next) {
    return -1;
  }
  const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Keeper::read_output(Fd& pipe, SpoolWriter& spool, std::size_t enough) {
  static std::array<char, k_chunk_bytes> buffer;
  for (std::size_t done = 0; pipe && done < enough;) {
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got > 0) {
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      spool.append(bytes);
      if (&spool == &m_err) {
        m_err.note_order(m_out.total());
      }
      if (m_terminal) {
        m_terminal->show(bytes);
      }
      m_output_end.append(bytes);
      note_activity();
      done += static_cast<std::size_t>(got);
      if (m_assignment.output_limit > 0 && m_out.total() + m_err.total() > m_assignment.output_limit && !m_kill_at) {
        end_tree(wire::Cause::output, k_output_grace);
      }
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      pipe.reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

void Keeper::reap() {
  signalfd_siginfo info{};
  [[maybe_unused]] const ssize_t got = ::read(m_surroundings.signals, &info, sizeof info);  // however many, it is one
  bool main_ended = false;
  bool childless = false;
  while (true) {
    int status = 0;
    rusage used{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &used);
    if (pid <= 0) {
      childless = pid < 0 && errno == ECHILD;
      break;
    }
    m_reaped = together(m_reaped, usage_of(used));
    if (pid == m_pid && m_phase == wire::Phase::running) {
      main_ended = true;
      m_status.end = WIFSIGNALED(status) ? wire::EndKind::signal : wire::EndKind::exit;
      m_status.end_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
      m_status.ended = {unix_milliseconds_now(), uptime_milliseconds_now()};
    }
  }
  if (main_ended || (childless && m_phase == wire::Phase::exited)) {
    note_end(childless);
  }
}

/// The end is recorded only when everything the command wrote before it is in the spool.
void Keeper::note_end(bool closed) {
  read_output(m_out_pipe, m_out, k_drain_bytes);
  read_output(m_err_pipe, m_err, k_drain_bytes);
  m_phase = closed ? wire::Phase::closed : wire::Phase::exited;
  m_status.closed = closed;
  m_runtime_ends.reset();
  m_waits_for_input = wire::WaitsForInput::no;
  m_has_answered = false;
  m_living = {};
  m_children = 0;
  if (was_killed_for_memory()) {
    m_status.cause = wire::Cause::memory;
  }
  m_status.used = m_reaped;
  m_status.taken = m_taken.all();
  if (m_terminal) {
    m_terminal->store_at_end();
    answer_screen_requests();
  }
  if (closed) {
    m_stdin_pipe.reset();
  }
  record_end();
}

/// The session has reserved disk space for the line, but not for the list of idempotency keys. If the line cannot be
/// written (some file systems cannot reserve space), the keeper stays and retries. While it lives, it reports how the
/// command ended.
void Keeper::record_end() {
  auto recorded = append(m_assignment.journal.get(), m_assignment.process, m_status);
  if (!recorded && !m_status.taken.empty()) {
    Status without_keys = m_status;
    without_keys.taken.clear();
    recorded = append(m_assignment.journal.get(), m_assignment.process, without_keys);
  }
  m_end_unrecorded = !recorded;
  m_next_record = Clock::now() + k_record_interval;
}

/// The kernel says how often it has killed, but not whom: a shell whose command it killed ends with 137.
bool Keeper::was_killed_for_memory() const {
  const bool killed = m_status.end == wire::EndKind::signal ? m_status.end_code == SIGKILL
                                                            : m_status.end_code == k_shell_signal_base + SIGKILL;
  return killed && m_settled && m_status.cause == wire::Cause::none && out_of_memory_kills() > m_earlier_memory_kills;
}

void Keeper::note_activity() {
  m_last_activity = Clock::now();
  m_starvation.forget();
  m_last_look = m_last_activity;
  m_look_interval = is_watched_for(k_watch_answer) ? k_first_answer_look : k_first_look;
  m_waits_for_input = wire::WaitsForInput::no;
  m_has_answered = false;
}

bool Keeper::is_watched_for(std::uint32_t what) const {
  what = m_stdin_pipe && !m_stdin_ends ? what : what & k_watch_answer;
  return m_phase == wire::Phase::running && std::any_of(m_links.begin(), m_links.end(), [&](const Link& link) {
           return (link.watches_input & what) != 0;
         });
}

void Keeper::look(bool heed_starvation) {
  const auto now = Clock::now();
  const auto since = now - std::exchange(m_last_look, now);
  m_look_interval = std::clamp(m_look_interval * 2, is_watched_for(k_watch_answer) ? k_first_answer_look : k_first_look,
                               k_longest_look_interval);
  if (m_phase != wire::Phase::running) {
    return;
  }
  const auto family = descendants();
  m_living = usage_of(family);
  m_children = static_cast<std::uint32_t>(family.size());
  if (heed_starvation) {
    m_starvation.note(now, cpu_waits(family));
  }
  const auto command = std::find_if(family.begin(), family.end(), [&](const auto& it) { return it.pid == m_pid; });
  m_paused = command != family.end() && command->is_stopped();
  if (m_paused) {
    m_last_activity += since;
  }
  const auto silence = std::chrono::duration_cast<milliseconds>(now - m_last_activity);
  const InputJudgement judgement = judge_input(see_whether_it_waits(family), m_output_end, silence);
  m_waits_for_input = judgement.waits;
  m_has_answered = judgement.has_answered;
  m_look_interval = std::min(m_look_interval, judgement.look_again.value_or(m_look_interval));
  ::malloc_trim(0);  // many keepers do nothing but wait
}

bool Keeper::has_unread_input() const {
  if (!m_stdin_pipe || !m_pending_input.empty() || (m_terminal && m_terminal->keys_under_way() > 0)) {
    return true;
  }
  int count = 0;
  return m_terminal ? is_readable(m_terminal->command_fd())
                    : ::ioctl(m_stdin_pipe.get(), FIONREAD, &count) == 0 && count > 0;
}

/// A terminal hands on what is typed and printed in its own time. So who is blocked on it need not have got what was
/// sent to it, and need not be heard yet. That is asked for with a poll, at which the kernel hands it on.
InputWait Keeper::see_whether_it_waits(const std::vector<ProcessEntry>& family) const {
  if (m_stdin_ends || has_unread_input()) {
    return {};
  }
  const auto wait = waits_for_input(family, input_source(m_terminal ? m_terminal->command_fd() : m_stdin_pipe.get()));
  const bool is_heard =
      (m_terminal && m_terminal->has_backlog()) || !(is_readable(m_out_pipe.get()) || is_readable(m_err_pipe.get()));
  return is_heard ? wait : InputWait{};
}

void Keeper::end_tree(wire::Cause cause, milliseconds grace) {
  if (m_status.cause == wire::Cause::none && m_phase == wire::Phase::running) {
    m_status.cause = cause;
  }
  const auto kill_at = Clock::now() + grace;
  m_kill_at = m_kill_at ? std::min(*m_kill_at, kill_at) : kill_at;
  signal_descendants(grace.count() > 0 ? SIGTERM : SIGKILL);
  signal_descendants(SIGCONT);
}

void Keeper::check_timers() {
  const auto now = Clock::now();
  if (is_watched_for(k_watch_input | k_watch_answer) && now >= m_last_look + m_look_interval) {
    look();
  }
  if (m_runtime_ends && now >= *m_runtime_ends) {
    m_runtime_ends.reset();
    end_tree(wire::Cause::timeout, k_timeout_grace);
  }
  if (m_kill_at && now >= *m_kill_at) {
    // Again and again: what is killed may have forked meanwhile. Once none is left, the loop ends by itself.
    m_kill_at = now + k_kill_again;
    signal_descendants(SIGKILL);
  }
  if (m_end_unrecorded && now >= m_next_record) {
    record_end();
  }
}

}  // namespace dockbridge::agent
