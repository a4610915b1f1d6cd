#include "agent/session/wait_list.hpp"

#include <algorithm>

#include "agent/session/ports.hpp"
#include "agent/session/wait_answer.hpp"

namespace dockbridge::agent {

using wire::WaitOutcome;

void WaitList::add_started(std::uint64_t request, Wait wait, Process& process) {
  if (wait.needs_growth()) {
    (void)process.link->watch_growth();
  }
  m_entries.push_back({request, &process, std::move(wait)});
}

void WaitList::add(std::uint64_t request, Wait wait, Process& process, Clock::time_point now) {
  m_entries.push_back({request, &process, std::move(wait)});
  if (process.link) {
    query(process);  // a dead keeper closes the link, and a busy one is asked again later
  } else {
    on_change(process, now);
  }
}

bool WaitList::has(std::uint64_t request) const {
  return std::any_of(m_entries.begin(), m_entries.end(), [&](const Entry& it) { return it.request == request; });
}

void WaitList::cancel(std::uint64_t request) {
  finish(request);
  erase_finished();
}

void WaitList::check(Clock::time_point now) {
  std::vector<Process*> behind;
  for (Entry& entry : m_entries) {
    if (entry.is_over) {
      continue;
    }
    switch (entry.wait.next_step(now)) {
      case Wait::Step::none:
        break;
      case Wait::Step::query:
        query(*entry.process);
        break;
      case Wait::Step::check_port:
        check_port(entry, now);
        break;
      case Wait::Step::time_out:
        conclude(entry, WaitOutcome::nothing, now);
        break;
      case Wait::Step::reply:
        reply(entry, *entry.wait.concluded());
        break;
    }
    if (entry.wait.is_behind() && !entry.is_over) {
      behind.push_back(entry.process);
    }
  }
  erase_finished();
  for (Process* process : behind) {
    serve(*process, now, true);
  }
}

std::optional<Clock::time_point> WaitList::next_check(Clock::time_point now) const {
  std::optional<Clock::time_point> next;
  for (const Entry& entry : m_entries) {
    const auto check = entry.wait.next_check(now);
    next = std::min(next.value_or(check), check);
  }
  return next;
}

void WaitList::on_change(Process& process, Clock::time_point now) {
  serve(process, now, false);
}

void WaitList::on_start_failed(const Process& process, const Error& error) {
  for (const Entry& entry : m_entries) {
    if (entry.process == &process && !entry.is_over) {
      reply_error(entry, error);
    }
  }
  erase_finished();
}

bool WaitList::is_awaited(const Process& process) const {
  return std::any_of(m_entries.begin(), m_entries.end(), [&](const Entry& it) { return it.process == &process; });
}

void WaitList::serve(Process& process, Clock::time_point now, bool only_behind) {
  bool needs_growth = false;
  std::uint32_t watched = 0;
  for (Entry& entry : m_entries) {
    if (entry.process != &process || entry.is_over) {
      continue;
    }
    const bool is_served = !only_behind || entry.wait.is_behind();
    if (is_served) {
      reply_if_over(entry, now);
    }
    if (!entry.is_over) {
      needs_growth = needs_growth || (is_served && entry.wait.needs_growth());
      watched |= entry.wait.watched();
    }
  }
  erase_finished();
  const bool runs =
      process.link && (!process.last || process.last->phase == static_cast<std::uint8_t>(wire::Phase::running));
  if (process.link && needs_growth) {
    (void)process.link->watch_growth();
  }
  if (runs && watched != process.input_watched) {
    process.input_watched = watched;
    (void)process.link->watch_input(watched);
  }
}

void WaitList::reply_if_over(Entry& entry, Clock::time_point now) {
  const Process& process = *entry.process;
  if (const auto searched = entry.wait.search(m_state.fd(), process.id); !searched) {
    reply_error(entry, searched.error());
  } else if (const auto outcome = entry.wait.outcome(process.link.has_value(), process.last)) {
    reply(entry, *outcome);
  } else if (process.last) {
    entry.wait.schedule_idle_check(*process.last, now);
  }
}

void WaitList::reply(const Entry& entry, WaitOutcome outcome) {
  const auto answer = make_wait_answer(m_state, *entry.process, entry.wait, outcome);
  if (!answer) {
    reply_error(entry, answer.error());
    return;
  }
  finish(entry.request);
  m_replies.send(entry.request, *answer);
}

void WaitList::reply_error(const Entry& entry, const Error& error) {
  finish(entry.request);
  m_replies.send_error(entry.request, error);
}

/// Ends all waits of the request.
void WaitList::finish(std::uint64_t request) {
  for (Entry& entry : m_entries) {
    entry.is_over = entry.is_over || entry.request == request;
  }
}

void WaitList::erase_finished() {
  std::erase_if(m_entries, [](const Entry& entry) { return entry.is_over; });
}

void WaitList::conclude(Entry& entry, WaitOutcome outcome, Clock::time_point now) {
  entry.wait.conclude(outcome, now);
  query(*entry.process);
}

/// A port on which another process listens is reported later, because the process may be about to end for that reason.
void WaitList::check_port(Entry& entry, Clock::time_point now) {
  const std::uint16_t port = *entry.wait.port();
  if (!is_port_open(port)) {
    return;
  }
  if (!entry.wait.accepts_foreign_port(now)) {
    const PortOwner listener = find_listener(port, entry.process->id);
    if (listener.pid != 0 && listener.process != entry.process->id) {
      entry.wait.postpone_port_check(now);
      return;
    }
  }
  conclude(entry, WaitOutcome::port, now);
}

void WaitList::query(Process& process) {
  if (process.link) {
    const bool heed_starvation = std::any_of(m_entries.begin(), m_entries.end(), [&](const Entry& it) {
      return it.process == &process && it.wait.heeds_starvation();
    });
    (void)process.link->query(heed_starvation);
  }
}

}  // namespace dockbridge::agent
