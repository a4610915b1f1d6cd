#include <algorithm>
#include <tuple>

#include "agent/session/ports.hpp"
#include "agent/session/session.hpp"
#include "agent/spool.hpp"

namespace dockbridge::agent {

namespace {

using wire::WaitOutcome;

/// How long a waiter that is to be answered still gives a keeper that was asked for news.
constexpr milliseconds k_keeper_patience{1000};
constexpr milliseconds k_port_interval{25};
/// A command that finds its port in use usually ends within this time, which says more than the port does.
constexpr milliseconds k_foreign_port_delay{500};
constexpr milliseconds k_foreign_port_interval{100};

bool has_answered(const StatePacket& state) {
  // An older keeper does not say. To wait for input is its answer then.
  constexpr std::uint8_t k_first_to_say = 5;
  return state.header.version < k_first_to_say || state.answered != 0;
}

}  // namespace

Result<Session::Waiter> Session::make_waiter(std::uint64_t request, const std::string& process,
                                             const wire::WaitTerms& terms) {
  Waiter waiter;
  const auto now = Clock::now();
  const wire::WaitCondition& until = terms.until;
  waiter.request = request;
  waiter.process = process;
  waiter.deadline = now + terms.timeout;
  waiter.carry = terms.carry;
  waiter.known = until.known;
  if (until.pattern) {
    auto watch = PatternWatch::make(*until.pattern, {until.search_from.first, until.search_from.second});
    if (!watch) {
      return fail(watch.error());
    }
    waiter.pattern = std::move(*watch);
  }
  if (until.port) {
    waiter.port = until.port;
    waiter.next_port_check = now;
    waiter.earliest_foreign_port = now + k_foreign_port_delay;
  }
  if (until.idle) {
    waiter.idle = SilenceLimit{*until.idle, until.longest_idle.value_or(*until.idle)};
    waiter.next_idle_check = now + waiter.idle->next_look(milliseconds(0), milliseconds(0));
  }
  waiter.input = until.input;
  waiter.answer = until.answer;
  waiter.closed = until.closed;
  return waiter;
}

Result<void> Session::wait(std::uint64_t request, const wire::WaitRequest& message) {
  if (!message.processes.empty()) {
    return wait_for_any(request, message);
  }
  const auto id = message.number ? numbered_process(*message.owner, *message.number) : message.process;
  auto waiter = id ? make_waiter(request, *id, message.wait) : fail(id.error());
  auto waits = waiter ? wait_for(std::move(*waiter)) : fail(waiter.error());
  if (!waits && waits.error().code == ErrorCode::process_expired && id && message.owner &&
      !m_numbers.has(*message.owner, *id)) {
    return fail(no_such_process(*id));  // it was another owner's
  }
  return waits;
}

Result<void> Session::wait_for_any(std::uint64_t request, const wire::WaitRequest& message) {
  const auto answered = std::make_shared<bool>(false);
  for (const std::string& id : message.processes) {
    auto waiter = make_waiter(request, id, message.wait);
    if (waiter) {
      waiter->answered = answered;
    }
    if (auto waits = waiter ? wait_for(std::move(*waiter)) : fail(waiter.error()); !waits) {
      *answered = true;  // the caller refuses the request
      return waits;
    }
    if (*answered) {
      break;
    }
  }
  return {};
}

Result<void> Session::wait_for(Waiter waiter) {
  const auto process = find(waiter.process);
  if (!process) {
    return fail(process.error());
  }
  if (waiter.port) {
    // From the start of the process on, because a call that shows progress waits in many slices.
    const milliseconds ran = age((*process)->record.meta.started, agent::now());
    waiter.earliest_foreign_port -= std::clamp(ran, milliseconds(0), k_foreign_port_delay);
  }
  const std::string id = waiter.process;
  m_waiters.push_back(std::move(waiter));
  if ((*process)->link) {
    ask_keeper(id);  // one that is gone hangs up, and one that is busy is asked again later
  } else {
    serve_waiters(**process);
    forget_if_done(id);
  }
  return {};
}

/// What the waiter waits for, if it has come. The state has to be news.
Result<std::optional<WaitOutcome>> Session::happened_to(Waiter& waiter, const Process& process) {
  if (waiter.pattern) {
    const auto seen = waiter.pattern->advance(m_state.fd(), process.id);
    if (!seen) {
      return fail(seen.error());
    }
    if (waiter.pattern->match()) {
      return WaitOutcome::pattern;
    }
    waiter.is_behind = !*seen;
    if (waiter.is_behind) {
      return std::nullopt;  // the line may have come before whatever else happened
    }
  }
  // Something the command left running may still open a port, or print the line.
  const bool stays = waiter.closed || waiter.port || waiter.pattern;
  const auto ending = static_cast<std::uint8_t>(stays ? wire::Phase::closed : wire::Phase::exited);
  if (!process.link || (process.last && process.last->phase >= ending)) {
    return WaitOutcome::ended;
  }
  if (waiter.happened || !process.last) {
    return waiter.happened;
  }
  const StatePacket& now = *process.last;
  if (waiter.known && (now.out_total > waiter.known->first || now.err_total > waiter.known->second)) {
    return WaitOutcome::grew;
  }
  const bool waits = now.waits_for_input == static_cast<std::uint8_t>(wire::WaitsForInput::yes);
  if (waits && (waiter.input || (waiter.answer && has_answered(now)))) {
    return WaitOutcome::input;
  }
  if (waiter.answer && now.answered != 0) {
    return WaitOutcome::idle;
  }
  if (waiter.idle && waiter.idle->is_reached(milliseconds(now.idle_ms), milliseconds(now.starved_ms))) {
    return WaitOutcome::idle;
  }
  return std::nullopt;
}

void Session::serve_waiters(Process& process, bool is_news) {
  bool wants_growth = false;
  std::uint32_t watched = 0;
  std::erase_if(m_waiters, [&](Waiter& waiter) {
    if (waiter.process != process.id) {
      return false;
    }
    if (waiter.is_answered()) {
      return true;
    }
    if (!is_news && !waiter.is_behind) {
      watched |= waiter.watched();
      return false;
    }
    const auto happened = happened_to(waiter, process);
    if (!happened) {
      refuse_wait(waiter, happened.error());
      return true;
    }
    if (*happened) {
      answer_wait(waiter, process, **happened);
      return true;
    }
    if (waiter.idle && process.last) {
      waiter.next_idle_check = Clock::now() + waiter.idle->next_look(milliseconds(process.last->idle_ms),
                                                                     milliseconds(process.last->starved_ms));
    }
    wants_growth = wants_growth || waiter.known || waiter.pattern;
    watched |= waiter.watched();
    return false;
  });
  const bool runs = process.link && (!process.last || process.last->phase == 0);
  if (process.link && wants_growth) {
    (void)process.link->watch_growth();
  }
  if (runs && watched != process.input_watched) {
    process.input_watched = watched;
    (void)process.link->watch_input(watched);
  }
}

void Session::forget_if_done(const std::string& id) {
  const auto known = m_processes.find(id);
  const bool is_done =
      known != m_processes.end() && !known->second->link &&
      std::none_of(m_waiters.begin(), m_waiters.end(), [&](const Waiter& waiter) { return waiter.process == id; });
  if (is_done) {
    m_processes.erase(known);
  }
}

/// What a keeper said last may be old by now: ask it once more, and answer when it has spoken. A keeper that does not
/// (stopped by a signal, say) is not waited for long: what the records say is then the answer.
void Session::conclude(Waiter& waiter, WaitOutcome what) {
  waiter.happened = what;
  waiter.deadline = Clock::now() + k_keeper_patience;
  ask_keeper(waiter.process);
}

void Session::ask_keeper(const std::string& process) {
  if (const auto known = m_processes.find(process); known != m_processes.end() && known->second->link) {
    const bool heed_starvation = std::any_of(m_waiters.begin(), m_waiters.end(), [&](const Waiter& waiter) {
      return waiter.process == process && waiter.idle && waiter.idle->heeds_starvation();
    });
    (void)known->second->link->query(heed_starvation);
  }
}

/// A port that another process listens on is reported too, but later: the process may be about to end because of it.
void Session::check_port(Waiter& waiter, Clock::time_point now) {
  waiter.next_port_check = now + k_port_interval;
  if (!is_port_open(*waiter.port)) {
    return;
  }
  if (now < waiter.earliest_foreign_port) {
    const PortOwner listener = find_listener(*waiter.port, waiter.process);
    if (listener.pid != 0 && listener.process != waiter.process) {
      waiter.next_port_check = std::min(now + k_foreign_port_interval, waiter.earliest_foreign_port);
      return;
    }
  }
  conclude(waiter, WaitOutcome::port);
}

/// A process of another owner is named by its pid and command only, which every owner can see anyway.
std::optional<wire::Listener> Session::describe_listener(std::uint16_t port, const Process& process) const {
  if (!is_port_open(port)) {
    return std::nullopt;
  }
  const PortOwner found = find_listener(port, process.id);
  wire::Listener listener{found.pid, found.command, found.process == process.id, "", 0};
  const auto record = found.process.empty() ? fail(ErrorCode::no_such_process, "") : m_state.read(found.process);
  if (record && record->meta.owner == process.record.meta.owner) {
    listener.process = found.process;
    listener.number = record->meta.number;
  }
  return listener;
}

void Session::check_waiters() {
  const auto now = Clock::now();
  std::vector<std::string> behind;
  std::vector<std::string> answered;
  std::erase_if(m_waiters, [&](Waiter& waiter) {
    if (waiter.is_answered()) {
      answered.push_back(waiter.process);
      return true;
    }
    if (waiter.happened && waiter.deadline <= now) {
      answer_wait(waiter, *m_processes.at(waiter.process), *waiter.happened);
      answered.push_back(waiter.process);
      return true;
    }
    if (waiter.is_behind) {
      behind.push_back(waiter.process);
    }
    if (waiter.happened) {
      return false;
    }
    if (waiter.deadline <= now) {
      conclude(waiter, WaitOutcome::nothing);
    } else if (waiter.port && waiter.next_port_check <= now) {
      check_port(waiter, now);
    } else if (waiter.idle && waiter.next_idle_check <= now) {
      waiter.next_idle_check = now + k_keeper_patience;
      ask_keeper(waiter.process);
    }
    return false;
  });
  for (const std::string& id : behind) {
    if (const auto known = m_processes.find(id); known != m_processes.end()) {
      serve_waiters(*known->second, false);
      forget_if_done(id);
    }
  }
  for (const std::string& id : answered) {
    forget_if_done(id);
  }
}

void Session::cancel_wait(std::uint64_t request) {
  std::vector<std::string> processes;
  std::erase_if(m_waiters, [&](const Waiter& waiter) {
    if (waiter.request == request) {
      processes.push_back(waiter.process);
    }
    return waiter.request == request;
  });
  for (const std::string& process : processes) {
    forget_if_done(process);
  }
}

Clock::time_point Session::Waiter::next_check() const {
  if (is_behind) {
    return Clock::now();
  }
  auto next = deadline;
  if (!happened && port) {
    next = std::min(next, next_port_check);
  }
  if (!happened && idle) {
    next = std::min(next, next_idle_check);
  }
  return next;
}

void Session::answer_wait(const Waiter& waiter, const Process& process, WaitOutcome happened) {
  const auto state = process.describe(m_state, waiter.pattern && waiter.pattern->match());
  if (!state) {
    refuse_wait(waiter, state.error());
    return;
  }
  wire::WaitAnswer reply{.state = *state, .happened = happened};
  if (waiter.pattern) {
    const auto [out, err] = waiter.pattern->positions();
    reply.searched = {out, err};
    reply.line = waiter.pattern->match() ? waiter.pattern->match()->line : "";
  }
  if (state->out.total > 0 && state->err.total > 0) {
    const auto spool = SpoolReader::open(m_state.fd(), err_name(process.id));
    reply.order = spool ? spool->order().value_or(wire::WriteOrder{}) : wire::WriteOrder{};
  }
  if (waiter.port) {
    reply.listener = describe_listener(*waiter.port, process);
  }
  const bool has_no_gap = state->out.head_end == state->out.tail_start && state->err.head_end == state->err.tail_start;
  reply.whole = has_no_gap &&
                state->out.total + state->err.total <= std::min<std::uint64_t>(waiter.carry, wire::k_max_read_bytes);
  if (reply.whole) {
    for (const auto& [name, total, to] : {std::tuple(out_name(process.id), state->out.total, &reply.out),
                                          std::tuple(err_name(process.id), state->err.total, &reply.err)}) {
      if (total == 0) {
        continue;
      }
      const auto spool = SpoolReader::open(m_state.fd(), name);
      auto slice = spool ? spool->read(0, total) : fail(spool.error());
      if (!slice || slice->bytes.size() != total) {
        refuse_wait(waiter, slice ? Error{ErrorCode::spool_damaged, "The stored output is incomplete"} : slice.error());
        return;
      }
      *to = std::move(slice->bytes);
    }
  }
  if (waiter.answered) {
    *waiter.answered = true;
  }
  auto message = wire::outgoing(reply);
  answer(waiter.request, std::move(message.head), message.body());
}

void Session::refuse_wait(const Waiter& waiter, const Error& error) {
  if (waiter.answered) {
    *waiter.answered = true;
  }
  refuse(waiter.request, error);
}

}  // namespace dockbridge::agent
