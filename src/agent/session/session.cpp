#include "agent/session/session.hpp"

#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "agent/session/direct_line.hpp"
#include "agent/session/identity.hpp"
#include "agent/session/shell.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::agent {

namespace {

using nlohmann::json;

/// Longest sleep of a session with processes. A session that wakes up later than this was frozen.
constexpr milliseconds k_max_sleep{1000};

}  // namespace

Session::Session(StateDirectory state, wire::Retention retention)
    : m_state(std::move(state)),
      m_shell(find_shell()),
      m_stream(m_loop, [this](HostRequest request) { handle(std::move(request)); }),
      m_files(m_loop, m_state.path(), m_stream),
      m_watches(m_loop, m_stream),
      m_greps(m_state, m_stream),
      m_pruner(m_state, retention),
      m_numbers(m_state.fd()),
      m_waits(m_state, m_stream),
      m_keepers(m_state.path()),
      m_processes(m_state, m_loop, m_stream, m_keepers, m_waits),
      m_drivers(m_state, m_shell, m_keepers),
      m_memory(m_state, m_processes, m_drivers.warm()),
      m_wait_requests(m_state, m_numbers, m_processes, m_waits),
      m_starter(m_state, m_shell, m_numbers, m_processes, m_drivers, m_memory, m_waits, m_wait_requests),
      m_input_requests(m_state, m_processes, m_stream),
      m_output_requests(m_state, m_processes, m_stream) {}

int Session::run() {
  ::prctl(PR_SET_NAME, "dockbridge-sess");
  m_stream.open(greeting());
  m_keepers.prepare();
  m_state.prepare();
  m_files.recover(m_state.fd());
  while (m_stream.is_open()) {
    const bool is_event = m_loop.run_once(next_timeout(Clock::now()));
    const auto now = Clock::now();
    if (!is_event) {  // after a pause of the container, the host's pings are still in the pipe
      m_stream.close_if_silent(now);
    }
    m_waits.check(now);
    m_watches.check(now);
    m_greps.advance();
    m_processes.forget_ended();
    start_warm_interpreters(now);
    m_memory.check_if_due(now);
    m_pruner.prune_if_due(now, m_processes.starts());
  }
  m_state.release_journal();
  return 0;
}

json Session::greeting() const {
  utsname system{};
  ::uname(&system);
  return wire::greeting_of({.version = DOCKBRIDGE_VERSION,
                            .machine = system.machine,
                            .shell = m_shell,
                            .state_directory = m_state.path(),
                            .home = own_home(),
                            .uid = ::geteuid(),
                            .pid = ::getpid()});
}

void Session::handle(HostRequest received) {
  const wire::Route& route = received.route;
  if (!route.id || (!route.operation && !route.unknown_operation)) {
    m_stream.close();
    return;
  }
  const std::uint64_t request = *route.id;
  if (!route.operation) {
    m_stream.send_error(request,
                        {ErrorCode::unknown_operation, "Unknown operation '" + *route.unknown_operation + "'"});
    return;
  }
  if (wire::properties_of(*route.operation).served_by != wire::ServedBy::session) {
    m_files.submit({request, *route.operation, route.staging, std::move(received.frame)});
    return;
  }
  const auto head = wire::parse_bounded(received.frame.head(), wire::k_max_head_depth);
  const auto read = [&](const wire::Field& fields) {
    return serve(request, *route.operation, fields, received.frame.body());
  };
  auto served = head ? wire::read_fields(*head, ErrorCode::bad_request, read) : fail(head.error());
  if (const auto done = served ? std::move(*served) : fail(served.error()); !done) {
    m_stream.send_error(request, done.error());
  }
}

Result<void> Session::serve(std::uint64_t request, wire::Operation operation, const wire::Field& head,
                            std::string_view body) {
  using enum wire::Operation;
  switch (operation) {
    case start:
      return m_starter.start(request, wire::from_json<wire::StartRequest>(head, body));
    case wait:
      return m_wait_requests.wait(request, wire::from_json<wire::WaitRequest>(head));
    case read:
      return m_output_requests.read(request, wire::from_json<wire::ReadRequest>(head));
    case grep:
      return m_greps.add(request, wire::from_json<wire::GrepRequest>(head));
    case input:
      return m_input_requests.input(request, wire::from_json<wire::InputRequest>(head, body));
    case keys:
      return m_input_requests.keys(request, wire::from_json<wire::KeysRequest>(head));
    case side:
      return m_input_requests.side(request, wire::from_json<wire::SideRequest>(head, body));
    case taken:
      return m_input_requests.taken(request, wire::from_json<wire::TakenRequest>(head));
    case screen:
      return m_processes.send_screen(request, wire::from_json<wire::ScreenRequest>(head).process);
    case resize:
      return m_input_requests.resize(request, wire::from_json<wire::ResizeRequest>(head));
    case signal:
      return m_input_requests.signal(request, wire::from_json<wire::SignalRequest>(head));
    case end:
      return m_input_requests.end(request, wire::from_json<wire::EndRequest>(head));
    case line:
      return join_line(wire::from_json<wire::LineRequest>(head)).and_then([&](const Fd& joined) -> Result<void> {
        m_stream.send(request, json::object());  // the last reply through the engine
        m_stream.switch_to(joined);
        return {};
      });
    case file_watch:
      return m_watches.add(request, wire::from_json<wire::WatchRequest>(head), Clock::now());
    case list:
      m_output_requests.list(request, wire::from_json<wire::ListRequest>(head));
      return {};
    case cancel:
      this->cancel(wire::from_json<wire::CancelRequest>(head).request);
      m_stream.send(request, json::object());
      return {};
    case ping:
      m_stream.send(request, json::object());
      return {};
    default:
      return fail(ErrorCode::internal_error, "A file operation reached the session");
  }
}

void Session::cancel(std::uint64_t request) {
  m_files.cancel(request);
  m_watches.cancel(request);
  m_waits.cancel(request);
  m_greps.cancel(request);
}

/// Not before the reply to the session's start was sent.
void Session::start_warm_interpreters(Clock::time_point now) {
  WarmInterpreters& warm = m_drivers.warm();
  if (const auto request = warm.awaited_request(); request && !m_waits.has(*request)) {
    warm.note_reply(now);
  }
  warm.start_if_due(now);
}

milliseconds Session::next_timeout(Clock::time_point now) const {
  if (!m_greps.empty()) {
    return milliseconds::zero();
  }
  auto next = std::min(m_stream.silence_deadline(), m_pruner.next_prune());
  next = std::min(next, m_watches.next_check().value_or(next));
  next = std::min(next, m_waits.next_check(now).value_or(next));
  next = std::min(next, m_memory.next_check());
  next = std::min(next, m_drivers.warm().next_start().value_or(next));
  if (!m_processes.empty()) {
    next = std::min(next, now + k_max_sleep);
  }
  return std::max(milliseconds::zero(), std::chrono::ceil<milliseconds>(next - now));
}

}  // namespace dockbridge::agent
