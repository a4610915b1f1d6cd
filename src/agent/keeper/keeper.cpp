#include "agent/keeper/keeper.hpp"

#include <malloc.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "agent/control/screen_packets.hpp"
#include "agent/keeper/child.hpp"
#include "agent/keeper/out_of_memory.hpp"
#include "agent/keeper/usage.hpp"
#include "agent/process_tree.hpp"

namespace dockbridge::agent {

namespace {

constexpr milliseconds k_timeout_grace{2000};
constexpr milliseconds k_output_grace{2000};
constexpr milliseconds k_max_kill_time{1000};
/// If a poll takes so much longer than its timeout, the container was frozen.
constexpr milliseconds k_frozen{1000};

/// Positions in the list of polled descriptors. The links follow.
enum Polled : std::size_t { k_signals, k_out, k_err, k_listener, k_in, k_side, k_screen, k_first_link };

/// Kills a tree that must not stay because it has no record.
void kill_tree(int signals) {
  for (const auto deadline = Deadline::after(k_max_kill_time); !deadline.passed();) {
    signal_descendants(SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    pollfd ended{signals, POLLIN, 0};
    if (errno == ECHILD || ::poll(&ended, 1, static_cast<int>(EndTimers::k_kill_interval.count())) < 0) {
      return;
    }
  }
}

/// Whether a session may give this cause. The others are found by the keeper.
bool is_order_cause(wire::Cause cause) {
  return cause <= wire::Cause::terminated || cause == wire::Cause::memory;
}

/// A command that is blocked on its input may not have received what was sent to it, and its output may not have
/// arrived yet: a terminal passes both on with a delay. A poll makes the kernel pass them on.
InputWait observe_input_wait(const std::vector<ProcessEntry>& processes, const CommandInput& input,
                             const CommandOutput& output) {
  if (!input.is_open() || input.has_unread()) {
    return {};
  }
  const InputWait wait = waits_for_input(processes, input.source());
  return output.has_unread() ? InputWait{} : wait;
}

}  // namespace

Keeper::Keeper(Assignment assignment, const Context& context)
    : m_assignment(std::move(assignment)),
      m_context(context),
      m_activity(m_links),
      m_output(context.directory, m_assignment.process, m_assignment.caps, m_activity),
      m_input(m_activity),
      m_side(context.directory, m_assignment.process, m_assignment.caps, m_output, m_activity),
      m_orders(m_input, m_side),
      m_end(m_assignment.journal, m_assignment.process) {}

Result<void> Keeper::start(Streams streams) {
  if (m_assignment.terminal) {
    auto terminal = Terminal::open(*m_assignment.terminal, m_context.directory, screen_name(m_assignment.process));
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
  Fd child_side;
  if (m_assignment.has_side_channel) {
    auto opened = open_side_socket();
    if (!opened) {
      return fail(opened.error());
    }
    limit_idle_time(opened->command, m_assignment.idle_limit);
    m_side.open(std::move(opened->keeper));
    child_side = std::move(opened->command);
  }
  ChildSpec& child = m_assignment.child;
  child.stdin_fd = streams.child_in.get();
  child.stdout_fd = streams.child_out.get();
  child.stderr_fd = streams.child_err.get();
  child.side_fd = child_side.get();
  child.on_terminal = m_terminal != nullptr;
  if (child.identity) {
    // The command may then open /dev/stdin, /dev/stdout and /dev/stderr.
    for (const int fd : {child.stdin_fd, child.stdout_fd, child.stderr_fd}) {
      [[maybe_unused]] const int changed = ::fchown(fd, child.identity->uid, child.identity->gid);
    }
  }
  const auto pid = start_child(child);
  if (!pid) {
    return fail(pid.error());
  }
  return begin(*pid, std::move(streams));
}

Result<void> Keeper::adopt(WarmChild child) {
  if (m_assignment.stdin_file) {
    child.streams.in.reset();
  }
  limit_idle_time(child.side.command, m_assignment.idle_limit);
  m_side.open(std::move(child.side.keeper));
  m_side.write(std::exchange(m_assignment.greeting, {}), Clock::now());
  return begin(child.pid, std::move(child.streams));
}

Result<void> Keeper::begin(pid_t command, Streams streams) {
  m_end.begin(command);
  m_activity.begin(Clock::now());
  m_output.open(std::move(streams.out), std::move(streams.err), m_terminal.get());
  m_input.open(std::move(streams.in), m_terminal.get());
  if (m_assignment.max_runtime.count() > 0) {
    m_timers.limit_runtime(Clock::now() + m_assignment.max_runtime);
  }
  if (auto written =
          append(m_assignment.journal.get(), m_assignment.process, Kept{command, m_context.socket, k_control_version});
      !written) {
    kill_tree(m_context.signals);
    return fail(ErrorCode::state_not_writable, written.error().message);
  }
  return {};
}

Fd Keeper::run(Fd first_link) {
  m_links.add_first(std::move(first_link), m_assignment.watch_input);
  loop();
  return m_links.take_free();
}

void Keeper::loop() {
  std::vector<pollfd> polled;
  while (m_end.phase() != wire::Phase::closed || m_end.is_unrecorded()) {
    list_descriptors(polled);
    wait_for_events(polled);
    if (polled[k_out].revents != 0) {
      m_output.read_out(Clock::now());
    }
    if (polled[k_err].revents != 0) {
      m_output.read_err(Clock::now());
    }
    if (polled[k_side].revents != 0) {
      m_side.serve(Clock::now());
    }
    check_output_limit();
    if (polled[k_in].revents != 0) {
      m_input.write_queue();
    }
    if (polled[k_screen].revents != 0) {
      m_terminal->send_backlog();
      const Terminal::News news = m_terminal->receive(m_input.room());
      m_input.write_from_screen(news.typed);
      if (news.is_stored) {
        m_links.report_screen();
      }
    }
    receive_orders(polled);
    if (polled[k_listener].revents != 0) {
      m_links.accept(m_context.listener);
    }
    if (polled[k_signals].revents != 0) {
      reap();
    }
    check_timers();
    const bool is_free = m_end.phase() == wire::Phase::closed && !m_end.is_unrecorded();
    m_links.notify(state(), m_activity.events(), is_free);
  }
}

void Keeper::list_descriptors(std::vector<pollfd>& polled) const {
  const auto screen_events = static_cast<short>(m_terminal && m_terminal->has_backlog() ? POLLIN | POLLOUT : POLLIN);
  polled.assign({{m_context.signals, POLLIN, 0},
                 {m_output.out_fd(), POLLIN, 0},
                 {m_output.err_fd(), POLLIN, 0},
                 {m_links.has_room() ? m_context.listener : -1, POLLIN, 0},
                 {m_input.fd_to_write(), POLLOUT, 0},
                 {m_side.fd(), m_side.awaited_events(), 0},
                 {m_terminal ? m_terminal->screen_fd() : -1, screen_events, 0}});
  for (const Link& link : m_links.all()) {
    polled.push_back({link.socket.get(), POLLIN, 0});
  }
}

/// Time in which nothing could run does not count as run time. Sessions check whether it counts as silence.
void Keeper::wait_for_events(std::vector<pollfd>& polled) {
  if (!std::exchange(m_has_polled, true) && ::poll(polled.data(), polled.size(), 0) > 0) {
    return;  // the command may have ended already, and then the rest of its start is not needed
  }
  if (!std::exchange(m_has_finished_start, true)) {
    m_end.note_memory_kills();
    set_oom_score(m_context.own_oom_score);
  }
  const int timeout = poll_timeout_ms();
  const auto began = Clock::now();
  ::poll(polled.data(), polled.size(), timeout);
  const auto overslept = Clock::now() - began - milliseconds(timeout);
  if (timeout >= 0 && overslept > k_frozen) {
    m_activity.postpone(overslept);
    m_timers.postpone(overslept);
  }
}

int Keeper::poll_timeout_ms() const {
  std::optional<Clock::time_point> next = m_timers.next();
  const auto consider = [&](Clock::time_point when) { next = next ? std::min(*next, when) : when; };
  if (m_timers.limits_runtime()) {
    consider(Clock::now() + k_frozen);
  }
  if (is_watched()) {
    consider(m_activity.next_examination());
  }
  if (m_end.is_unrecorded()) {
    consider(m_end.next_record());
  }
  if (!next) {
    return -1;
  }
  const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Keeper::receive_orders(const std::vector<pollfd>& polled) {
  std::vector<Link>& links = m_links.all();
  for (std::size_t i = polled.size(); i-- > k_first_link;) {
    if (polled[i].revents == 0) {
      continue;
    }
    const auto link = links.begin() + static_cast<std::ptrdiff_t>(i - k_first_link);
    ControlPacket packet;
    const Received received = receive_control(link->socket.get(), packet);
    if (received == Received::hangup || (received == Received::packet && !execute(*link, packet))) {
      links.erase(link);
    }
  }
}

bool Keeper::execute(Link& link, const ControlPacket& packet) {
  const auto order = static_cast<Order>(packet.header.type);
  const std::uint32_t value = packet.header.value;
  if (!link.is_attached) {
    link.is_attached = order == Order::attach && packet.payload == m_assignment.process;
    return link.is_attached;
  }
  switch (order) {
    case Order::none:
    case Order::start:
    case Order::attach:
      return false;
    case Order::query:
      examine((value & k_with_starvation) != 0);
      link.sent = state();
      send_state(link.socket.get(), link.sent);  // a session that does not read it asks again
      return true;
    case Order::watch_growth:
      link.watches_growth = true;
      return true;
    case Order::watch_input:
      link.watched_events = value;
      if (value != 0) {
        m_activity.restart_intervals();
        examine();
      }
      return true;
    case Order::input:
    case Order::keys:
    case Order::side:
      m_orders.execute(link.socket.get(), packet, Clock::now());
      return true;
    case Order::once:
      return m_orders.execute_once(link.socket.get(), packet, m_end.is_running(), Clock::now());
    case Order::screen:
      link.awaits_screen = true;
      if (m_terminal && m_terminal->has_screen()) {
        m_terminal->store();
      } else {
        m_links.report_screen();
      }
      return true;
    case Order::resize:
      if (m_terminal) {
        m_terminal->resize(unpacked_size(value));
      }
      return true;
    case Order::trim:
      m_output.trim(value);
      m_side.trim(value);
      return true;
    case Order::signal:
      signal_descendants(static_cast<int>(value));
      return true;
    case Order::end: {
      const auto cause = packet.payload.empty() ? 0U : static_cast<unsigned char>(packet.payload.front());
      if (!is_order_cause(static_cast<wire::Cause>(cause))) {
        return false;
      }
      end_tree(static_cast<wire::Cause>(cause), milliseconds(value));
      return true;
    }
  }
  return false;
}

void Keeper::reap() {
  signalfd_siginfo info{};
  // One read, because the descriptor reports several ended processes as one signal.
  [[maybe_unused]] const ssize_t got = ::read(m_context.signals, &info, sizeof info);
  const auto phase = m_end.reap();
  if (!phase) {
    return;
  }
  // The end is recorded only when everything that the command wrote before it is in the spool.
  m_side.drain(Clock::now());
  m_output.drain(Clock::now());
  check_output_limit();
  m_end.enter(*phase, m_orders.taken());
  m_activity.note_end();
  m_timers.note_end();
  if (m_terminal) {
    m_terminal->store_at_end();
    m_links.report_screen();
  }
  if (*phase == wire::Phase::closed) {
    m_input.close();
  }
  m_end.record(Clock::now());
}

bool Keeper::is_watched() const {
  return m_end.is_running() &&
         m_links.is_watched_for(m_input.is_open() ? k_watch_input | k_watch_answer : k_watch_answer);
}

void Keeper::examine(bool measures_starvation) {
  if (!m_end.is_running()) {
    return;
  }
  const auto now = Clock::now();
  const auto processes = descendants();
  const auto command =
      std::find_if(processes.begin(), processes.end(), [&](const auto& process) { return process.pid == m_end.pid(); });
  TreeState tree;
  tree.used = usage_of(processes);
  tree.processes = static_cast<std::uint32_t>(processes.size());
  if (measures_starvation) {
    tree.cpu_waits = cpu_waits(processes);
  }
  tree.is_paused = command != processes.end() && command->is_stopped();
  tree.input_wait = observe_input_wait(processes, m_input, m_output);
  m_activity.note_examination(now, std::move(tree));
  ::malloc_trim(0);  // there may be many idle keepers
}

StatePacket Keeper::state() const {
  StatePacket state;
  state.header.type = static_cast<std::uint8_t>(Answer::state);
  state.terminal = m_terminal ? 1 : 0;
  state.stdin_open = m_input.is_open() ? 1 : 0;
  state.out_total = m_output.out_total();
  state.err_total = m_output.err_total();
  state.side_total = m_side.total();
  m_end.describe(state);
  m_activity.describe(state, Clock::now());
  return state;
}

void Keeper::end_tree(wire::Cause cause, milliseconds grace) {
  m_end.set_cause(cause);
  m_timers.kill_at(Clock::now() + grace);
  signal_descendants(grace.count() > 0 ? SIGTERM : SIGKILL);
  signal_descendants(SIGCONT);
}

void Keeper::check_output_limit() {
  const std::uint64_t limit = m_assignment.output_limit;
  if (limit > 0 && !m_timers.is_ending() && m_output.out_total() + m_output.err_total() > limit) {
    end_tree(wire::Cause::output, k_output_grace);
  }
}

void Keeper::check_timers() {
  const auto now = Clock::now();
  if (is_watched() && now >= m_activity.next_examination()) {
    examine();
  }
  if (m_timers.take_timeout(now)) {
    end_tree(wire::Cause::timeout, k_timeout_grace);
  }
  if (m_timers.take_kill(now)) {
    signal_descendants(SIGKILL);
  }
  if (m_end.is_unrecorded() && now >= m_end.next_record()) {
    m_end.record(now);
  }
}

}  // namespace dockbridge::agent
