#include "agent/session/process_table.hpp"

#include <sys/epoll.h>

#include <algorithm>

#include "agent/session/idempotency.hpp"
#include "util/file.hpp"
#include "wire/output_messages.hpp"

namespace dockbridge::agent {

namespace {

/// Longest silence that is accepted from a keeper, so that a malicious value does not overflow.
constexpr milliseconds k_max_reported_idle = std::chrono::hours{24 * 365 * 100};

/// Subtracts the time in which nothing could run. It does not count as silence.
void leave_out_frozen_time(StatePacket& state, const FrozenTime& frozen_time, Clock::time_point now) {
  const milliseconds idle(std::min<std::uint64_t>(state.idle_ms, k_max_reported_idle.count()));
  const auto frozen = static_cast<std::uint64_t>(frozen_time.between(now - idle, now).count());
  state.idle_ms -= std::min(state.idle_ms, frozen);
  state.starved_ms -= std::min(state.starved_ms, frozen);
  state.starved_ms = std::min(state.starved_ms, state.idle_ms);
}

/// Parses the payload of `start_failed`: code, message and next step, each on a line.
Error error_in(std::string_view reason) {
  const std::size_t first = reason.find('\n');
  const std::size_t second = reason.find('\n', first + 1);
  return {error_code_named(reason.substr(0, first)).value_or(ErrorCode::cannot_start),
          std::string(reason.substr(first + 1, second - first - 1)), std::string(reason.substr(second + 1))};
}

}  // namespace

ProcessTable::ProcessTable(const StateDirectory& state, EventLoop& loop, Replies& replies, KeeperPool& keepers,
                           ProcessObserver& observer)
    : m_state(state), m_loop(loop), m_replies(replies), m_observer(observer), m_keepers(keepers) {}

Result<Process*> ProcessTable::start(Meta meta, const Assignment& assignment, std::optional<KeeperLink> warm) {
  if (warm && !warm->assign(assignment)) {
    warm.reset();  // its keeper was killed
    meta.session->is_warm = false;
    (void)append(assignment.journal.get(), assignment.process, meta);
  }
  auto link = warm ? Result<KeeperLink>(std::move(*warm)) : m_keepers.hand_over(assignment);
  if (!link) {
    return fail(link.error());
  }
  Process& process = m_processes[assignment.process];
  if (process.link) {
    detach(process);  // the record of an earlier process with this id was removed from the state directory
  }
  process.id = assignment.process;
  process.record = Record{std::move(meta), std::nullopt, std::nullopt};
  process.last.reset();
  process.input_watched = assignment.watch_input ? k_watch_input : 0;
  process.has_own_keeper = true;
  attach(process, std::move(*link));
  ++m_starts;
  return &process;
}

Result<Process*> ProcessTable::find(const std::string& id) {
  if (const auto known = m_processes.find(id); known != m_processes.end()) {
    return &known->second;
  }
  auto record = m_state.read(id);
  if (!record) {
    return fail(record.error());
  }
  auto link = KeeperLink::find(m_state.fd(), id, *record, now());
  if (!link) {
    return fail(link.error());
  }
  Process& process = m_processes[id];
  process.id = id;
  process.record = std::move(*record);
  if (*link) {
    attach(process, std::move(**link));
  } else {
    m_may_have_ended = true;
  }
  return &process;
}

Result<Process*> ProcessTable::find_live(const std::string& id) {
  auto process = find(id);
  return !process || (*process)->link ? process : fail(ErrorCode::process_ended, "The process has ended");
}

const Process* ProcessTable::known(const std::string& id) const {
  const auto known = m_processes.find(id);
  return known == m_processes.end() ? nullptr : &known->second;
}

void ProcessTable::forget_ended() {
  if (!std::exchange(m_may_have_ended, false)) {
    return;
  }
  std::erase_if(m_processes, [this](const auto& entry) {
    const Process& process = entry.second;
    const bool is_awaited = !process.link && m_observer.is_awaited(process);
    m_may_have_ended = m_may_have_ended || is_awaited;
    return !process.link && !is_awaited;
  });
}

void ProcessTable::attach(Process& process, KeeperLink link) {
  process.link.emplace(std::move(link));
  m_loop.add(process.link->fd(), EPOLLIN, [this, id = process.id](std::uint32_t) { receive(id); });
}

/// Takes the link from the process. Its pending requests get their replies.
KeeperLink ProcessTable::detach(Process& process) {
  KeeperLink link = *std::exchange(process.link, std::nullopt);
  m_loop.remove(link.fd());
  m_may_have_ended = true;
  for (const PendingInput& input : process.input_requests) {
    m_replies.send_error(input.request, {ErrorCode::process_ended, "The process ended before it accepted the input"});
  }
  process.input_requests.clear();
  send_requested_screens(process);
  return link;
}

void ProcessTable::receive(const std::string& id) {
  const auto known = m_processes.find(id);
  if (known == m_processes.end() || !known->second.link) {
    return;
  }
  Process& process = known->second;
  ControlPacket packet;
  const Received received = process.link->receive(packet);
  if (received == Received::hangup || (received == Received::packet && !on_packet(process, packet))) {
    detach(process);
    m_observer.on_change(process, Clock::now());
  }
}

bool ProcessTable::on_packet(Process& process, const ControlPacket& packet) {
  switch (static_cast<Answer>(packet.header.type)) {
    case Answer::state:
      return on_state(process, packet);
    case Answer::accepted:
      return on_accepted(process, packet);
    case Answer::screen:
      send_requested_screens(process);
      return true;
    case Answer::start_failed:
      return on_start_failed(process, packet.payload);
    case Answer::child_ended:
      return true;  // right before the keeper got this process, which it then started as usual
  }
  return true;  // a packet type of a newer version
}

bool ProcessTable::on_state(Process& process, const ControlPacket& packet) {
  auto state = state_in(packet);
  if (!state || (state->header.value == k_keeper_is_free && !process.has_own_keeper)) {
    return false;
  }
  const auto now = Clock::now();
  leave_out_frozen_time(*state, m_loop.frozen(), now);
  process.last = state;
  // A keeper reports each of these once.
  if (state->waits_for_input == static_cast<std::uint8_t>(wire::WaitsForInput::yes)) {
    process.input_watched &= ~k_watch_input;
  }
  if (state->answered != 0) {
    process.input_watched &= ~k_watch_answer;
  }
  m_observer.on_change(process, now);
  if (state->header.value == k_keeper_is_free) {
    m_keepers.give_back(detach(process));
  }
  return true;
}

bool ProcessTable::on_accepted(Process& process, const ControlPacket& packet) {
  if (process.input_requests.empty()) {
    return true;
  }
  const PendingInput input = process.input_requests.front();
  const auto found = input.once ? once_answer_in(packet) : std::nullopt;
  const std::uint32_t accepted = packet.header.value;
  if (accepted > input.most || found.has_value() != input.once) {
    return false;
  }
  process.input_requests.pop_front();
  const auto answer = found ? keyed_answer(accepted, *found) : wire::InputAnswer{accepted};
  if (answer) {
    m_replies.send(input.request, *answer);
  } else {
    m_replies.send_error(input.request, answer.error());
  }
  return true;
}

bool ProcessTable::on_start_failed(Process& process, std::string_view reason) {
  if (!process.has_own_keeper) {
    return false;
  }
  m_observer.on_start_failed(process, error_in(reason));
  m_keepers.give_back(detach(process));
  m_state.remove(process.id);
  return true;
}

/// The keeper stores the screen while it lives. After that, the last stored screen counts.
Result<void> ProcessTable::send_screen(std::uint64_t request, const std::string& id) {
  const auto process = find(id);
  if (!process) {
    return fail(process.error());
  }
  if (!(*process)->link) {
    send_stored_screen(request, id);
    return {};
  }
  auto sent = (*process)->link->screen();
  if (sent) {
    (*process)->screen_requests.push_back(request);
  }
  return sent;
}

void ProcessTable::send_requested_screens(Process& process) {
  for (const std::uint64_t request : std::exchange(process.screen_requests, {})) {
    send_stored_screen(request, process.id);
  }
}

void ProcessTable::send_stored_screen(std::uint64_t request, const std::string& id) {
  const auto stored = read_regular_at(m_state.fd(), screen_name(id), wire::k_max_text_body);
  const std::size_t end = stored ? stored->find('\n') : std::string::npos;
  const auto facts = end == std::string::npos
                         ? fail(ErrorCode::no_screen, "")
                         : wire::parse_bounded(std::string_view(*stored).substr(0, end), 3)
                               .and_then([](const nlohmann::json& written) {
                                 return wire::message_from<wire::ScreenFacts>(written, ErrorCode::protocol_violation);
                               });
  if (!facts) {
    m_replies.send_error(request, {ErrorCode::no_screen, "The process has no screen: it was not started on a terminal",
                                   "Start the command with tty, or read its output without screen"});
    return;
  }
  const wire::ScreenAnswer answer{*facts, stored->substr(end + 1)};
  m_replies.send(request, answer);
}

}  // namespace dockbridge::agent
