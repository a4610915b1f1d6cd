#include "mcp/call_admission.hpp"

#include <algorithm>

namespace dockbridge::mcp {

CallAdmission::Arrival CallAdmission::arrive(const Demand& demand, Clock::time_point now) {
  Owner& owner = m_owners[demand.owner];
  if (m_running < m_limits.calls && owner.running < demand.owner_limit) {
    ++m_running;
    ++owner.running;
    return {Decision::run};
  }
  if (!has_place(demand)) {
    note_rejection(now);
    return {Decision::reject};
  }
  const Ticket ticket = m_next_ticket++;
  m_waiting.emplace(ticket, Waiting{demand, now + m_limits.max_wait, now + m_limits.first_report});
  if (owner.queue.empty()) {
    m_turns.push_back(demand.owner);
  }
  owner.queue.push_back(ticket);
  owner.bytes += demand.bytes;
  m_bytes += demand.bytes;
  return {Decision::wait, ticket};
}

bool CallAdmission::has_place(const Demand& demand) {
  const Owner& owner = m_owners[demand.owner];
  return m_waiting.size() < m_limits.waiting && owner.queue.size() < m_limits.waiting_per_owner &&
         demand.bytes <= m_limits.waiting_bytes - m_bytes &&
         demand.bytes <= m_limits.waiting_bytes_per_owner - owner.bytes;
}

void CallAdmission::end(const std::string& owner) {
  --m_running;
  --m_owners[owner].running;
}

std::optional<CallAdmission::Ticket> CallAdmission::start_next() {
  if (m_running >= m_limits.calls) {
    return std::nullopt;
  }
  for (const std::string& name : m_turns) {
    Owner& owner = m_owners[name];
    const auto found = std::find_if(owner.queue.begin(), owner.queue.end(), [&](Ticket ticket) {
      const Waiting& waiting = m_waiting.at(ticket);
      return !waiting.held && owner.running < waiting.demand.owner_limit;
    });
    if (found == owner.queue.end()) {
      continue;
    }
    const Ticket ticket = *found;
    ++m_running;
    ++owner.running;
    const std::string served = name;  // the removal changes the turns
    remove(ticket);
    if (const auto turn = std::find(m_turns.begin(), m_turns.end(), served); turn != m_turns.end()) {
      std::rotate(turn, turn + 1, m_turns.end());
    }
    return ticket;
  }
  return std::nullopt;
}

void CallAdmission::leave(Ticket ticket) {
  remove(ticket);
}

void CallAdmission::remove(Ticket ticket) {
  const auto waiting = m_waiting.find(ticket);
  const Demand demand = waiting->second.demand;
  m_waiting.erase(waiting);
  Owner& owner = m_owners[demand.owner];
  std::erase(owner.queue, ticket);
  owner.bytes -= demand.bytes;
  m_bytes -= demand.bytes;
  if (owner.queue.empty()) {
    std::erase(m_turns, demand.owner);
  }
}

std::vector<CallAdmission::Ticket> CallAdmission::expired(Clock::time_point now) const {
  std::vector<Ticket> tickets;
  for (const auto& [ticket, waiting] : m_waiting) {
    if (!waiting.held && waiting.deadline <= now) {
      tickets.push_back(ticket);
    }
  }
  return tickets;
}

std::vector<CallAdmission::Report> CallAdmission::take_reports(Clock::time_point now) {
  std::vector<Report> reports;
  for (auto& [ticket, waiting] : m_waiting) {
    if (!waiting.demand.wants_position || waiting.held || waiting.next_report > now) {
      continue;
    }
    waiting.next_report = now + m_limits.report_interval;
    if (const std::size_t place = position(ticket); place != waiting.reported) {
      waiting.reported = place;
      reports.push_back({ticket, place});
    }
  }
  return reports;
}

std::optional<Clock::time_point> CallAdmission::next_event() const {
  std::optional<Clock::time_point> next;
  for (const auto& [ticket, waiting] : m_waiting) {
    if (!waiting.held) {
      const auto own =
          waiting.demand.wants_position ? std::min(waiting.deadline, waiting.next_report) : waiting.deadline;
      next = std::min(next.value_or(own), own);
    }
  }
  return next;
}

std::size_t CallAdmission::position(Ticket ticket) const {
  const std::string& name = m_waiting.at(ticket).demand.owner;
  const auto& queue = m_owners.at(name).queue;
  const auto before = static_cast<std::size_t>(std::find(queue.begin(), queue.end(), ticket) - queue.begin());
  std::size_t place = before + 1;
  bool is_earlier_turn = true;
  for (const std::string& other : m_turns) {
    if (other == name) {
      is_earlier_turn = false;
    } else {
      place += std::min(m_owners.at(other).queue.size(), before + (is_earlier_turn ? 1 : 0));
    }
  }
  return place;
}

seconds CallAdmission::retry_after(Clock::time_point now) const {
  if (m_waiting.empty()) {
    return seconds(1);
  }
  // All calls wait equally long, so the first one is the oldest.
  return std::max(seconds(1), std::chrono::ceil<seconds>(m_waiting.begin()->second.deadline - now));
}

bool CallAdmission::has_rejected_lately(Clock::time_point now) const {
  return m_last_rejection && now - *m_last_rejection < m_limits.rejection_memory;
}

}  // namespace dockbridge::mcp
