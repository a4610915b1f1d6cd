#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "agent/session/session.hpp"

namespace dockbridge::agent {

namespace {

/// More than any keeper says; one that is not to be believed must not make times overflow.
constexpr milliseconds k_longest_idle = std::chrono::hours{24 * 365 * 100};

}  // namespace

Result<Process*> Session::find(const std::string& id) {
  if (const auto known = m_processes.find(id); known != m_processes.end()) {
    return known->second.get();
  }
  auto record = m_state.read(id);
  if (!record) {
    return fail(record.error());
  }
  auto link = KeeperLink::find(m_state.fd(), id, *record, now());
  if (!link) {
    return fail(link.error());
  }
  auto& process = *(m_processes[id] = std::make_unique<Process>());
  process.id = id;
  process.record = std::move(*record);
  if (*link) {
    attach(process, std::move(**link));
  }
  return &process;
}

Result<Process*> Session::find_live(const std::string& id) {
  auto process = find(id);
  if (process && !(*process)->link) {
    forget_if_done(id);
    return fail(ErrorCode::process_ended, "The process has ended");
  }
  return process;
}

void Session::attach(Process& process, KeeperLink link) {
  process.link.emplace(std::move(link));
  m_loop.add(process.link->fd(), EPOLLIN, [this, id = process.id](std::uint32_t) { on_keeper(id); });
}

void Session::on_keeper(const std::string& id) {
  const auto known = m_processes.find(id);
  if (known == m_processes.end() || !known->second->link) {
    return;
  }
  Process& process = *known->second;
  ControlPacket packet;
  switch (process.link->receive(packet)) {
    case Received::nothing:
      return;
    case Received::packet:
      if (on_keeper_packet(process, packet)) {
        return;
      }
      break;
    case Received::hangup:
      break;
  }
  detach(process);
  serve_waiters(process);
  forget_if_done(id);
}

bool Session::on_keeper_packet(Process& process, const ControlPacket& packet) {
  switch (static_cast<Answer>(packet.header.type)) {
    case Answer::state: {
      auto state = state_in(packet);
      if (!state || (state->header.value == k_keeper_is_free && !process.has_own_keeper)) {
        return false;
      }
      leave_out_frozen_time(*state);
      process.last = state;
      if (state->waits_for_input == static_cast<std::uint8_t>(wire::WaitsForInput::yes)) {
        process.input_watched &= ~k_watch_input;  // told once
      }
      if (state->answered != 0) {
        process.input_watched &= ~k_watch_answer;
      }
      serve_waiters(process);
      if (state->header.value == k_keeper_is_free) {
        take_back_keeper(process.id);
      }
      return true;
    }
    case Answer::accepted: {
      if (process.input_requests.empty()) {
        return true;
      }
      const PendingInput input = process.input_requests.front();
      const auto found = input.once ? once_answer_in(packet) : std::nullopt;
      if (packet.header.value > input.most || found.has_value() != input.once) {
        return false;
      }
      if (found) {
        answer_once(input.request, packet.header.value, *found);
      } else {
        answer(input.request, wire::to_json(wire::InputAnswer{packet.header.value}));
      }
      process.input_requests.pop_front();
      return true;
    }
    case Answer::screen:
      for (const std::uint64_t request : std::exchange(process.screen_requests, {})) {
        answer_screen(request, process.id);
      }
      return true;
    case Answer::start_failed:
      if (process.has_own_keeper) {
        on_start_failed(process.id, packet.payload);
      }
      return process.has_own_keeper;
  }
  return true;  // a packet type of a newer version
}

/// Time in which the process could not run is no silence.
void Session::leave_out_frozen_time(StatePacket& state) const {
  const auto at = Clock::now();
  const milliseconds idle(std::min<std::uint64_t>(state.idle_ms, k_longest_idle.count()));
  const auto frozen = static_cast<std::uint64_t>(m_loop.frozen().between(at - idle, at).count());
  state.idle_ms -= std::min(state.idle_ms, frozen);
  state.starved_ms -= std::min(state.starved_ms, frozen);
  state.starved_ms = std::min(state.starved_ms, state.idle_ms);
}

void Session::on_start_failed(std::string id, std::string_view reason) {
  Error error;
  const std::size_t first = reason.find('\n');
  const std::size_t second = reason.find('\n', first + 1);
  error.code = error_code_named(reason.substr(0, first)).value_or(ErrorCode::cannot_start);
  error.message = reason.substr(first + 1, second - first - 1);
  error.next_step = reason.substr(second + 1);
  const auto mine = [&](const Waiter& waiter) { return waiter.process == id; };
  for (const Waiter& waiter : m_waiters) {
    if (mine(waiter) && !waiter.is_answered()) {
      refuse_wait(waiter, error);
    }
  }
  std::erase_if(m_waiters, mine);
  take_back_keeper(id);
  m_state.remove(id);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the caller's may be the id of the process that goes
void Session::take_back_keeper(std::string id) {
  m_keepers.give_back(*detach(*m_processes.at(id)));
  forget_if_done(id);
}

std::optional<KeeperLink> Session::detach(Process& process) {
  std::optional<KeeperLink> link = std::exchange(process.link, std::nullopt);
  if (link) {
    m_loop.remove(link->fd());
  }
  for (const PendingInput& input : process.input_requests) {
    refuse(input.request, {ErrorCode::process_ended, "The process ended before it accepted the input"});
  }
  process.input_requests.clear();
  for (const std::uint64_t request : std::exchange(process.screen_requests, {})) {
    answer_screen(request, process.id);
  }
  return link;
}

}  // namespace dockbridge::agent
