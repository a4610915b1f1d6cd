#include "agent/session/wait.hpp"

#include <algorithm>

namespace dockbridge::agent {

namespace {

using wire::WaitOutcome;

/// Time in which a keeper must report its state.
constexpr milliseconds k_keeper_patience{1000};
constexpr milliseconds k_port_interval{25};
/// A command that finds its port in use usually ends within this time. Its end is then reported instead of the port.
constexpr milliseconds k_foreign_port_delay{500};
constexpr milliseconds k_foreign_port_interval{100};

bool has_answered(const StatePacket& state) {
  // An older keeper does not report this. A process that waits for input counts as having answered.
  constexpr std::uint8_t k_first_version = 5;
  return state.header.version < k_first_version || state.answered != 0;
}

}  // namespace

Result<Wait> Wait::make(const wire::WaitTerms& terms, Clock::time_point now) {
  Wait wait;
  const wire::WaitCondition& until = terms.until;
  wait.m_deadline = now + terms.timeout;
  wait.m_carry = terms.carry;
  wait.m_known = until.known;
  wait.m_known_side = until.known_side;
  if (until.pattern) {
    auto watch = PatternWatch::make(*until.pattern, {until.search_from.first, until.search_from.second});
    if (!watch) {
      return fail(watch.error());
    }
    wait.m_pattern = std::move(*watch);
  }
  if (until.port) {
    wait.m_port = until.port;
    wait.m_next_port_check = now;
    wait.m_earliest_foreign_port = now + k_foreign_port_delay;
  }
  if (until.idle) {
    wait.m_idle = SilenceLimit{*until.idle, until.longest_idle.value_or(*until.idle)};
    wait.m_next_idle_check = now + wait.m_idle->next_check(milliseconds(0), milliseconds(0));
  }
  wait.m_needs_input = until.input;
  wait.m_needs_answer = until.answer;
  wait.m_needs_closed = until.closed;
  return wait;
}

Result<void> Wait::search(int directory_fd, const std::string& process) {
  if (m_pattern) {
    const auto is_done = m_pattern->advance(directory_fd, process);
    if (!is_done) {
      return fail(is_done.error());
    }
    m_is_behind = !*is_done;
  }
  return {};
}

std::optional<WaitOutcome> Wait::outcome(bool has_keeper, const std::optional<StatePacket>& last) const {
  if (m_pattern && m_pattern->match()) {
    return WaitOutcome::pattern;
  }
  if (m_is_behind) {
    return std::nullopt;  // the line may be older than any other event
  }
  // A process that the command left running may still open a port or print the line.
  const bool outlives_command = m_needs_closed || m_port || m_pattern;
  const auto ending = static_cast<std::uint8_t>(outlives_command ? wire::Phase::closed : wire::Phase::exited);
  if (!has_keeper || (last && last->phase >= ending)) {
    return WaitOutcome::ended;
  }
  if (m_concluded || !last) {
    return m_concluded;
  }
  if (m_known && (last->out_total > m_known->first || last->err_total > m_known->second)) {
    return WaitOutcome::grew;
  }
  if (m_known_side && last->side_total > *m_known_side) {
    return WaitOutcome::side;
  }
  const bool waits = last->waits_for_input == static_cast<std::uint8_t>(wire::WaitsForInput::yes);
  if (waits && (m_needs_input || (m_needs_answer && has_answered(*last)))) {
    return WaitOutcome::input;
  }
  const bool has_paused = m_needs_answer && last->answered != 0;
  if (has_paused || (m_idle && m_idle->is_reached(milliseconds(last->idle_ms), milliseconds(last->starved_ms)))) {
    return WaitOutcome::idle;
  }
  return std::nullopt;
}

void Wait::schedule_idle_check(const StatePacket& state, Clock::time_point now) {
  if (m_idle) {
    m_next_idle_check = now + m_idle->next_check(milliseconds(state.idle_ms), milliseconds(state.starved_ms));
  }
}

Wait::Step Wait::next_step(Clock::time_point now) {
  if (m_concluded) {
    return m_deadline <= now ? Step::reply : Step::none;
  }
  if (m_deadline <= now) {
    return Step::time_out;
  }
  if (m_port && m_next_port_check <= now) {
    m_next_port_check = now + k_port_interval;
    return Step::check_port;
  }
  if (m_idle && m_next_idle_check <= now) {
    m_next_idle_check = now + k_keeper_patience;
    return Step::query;
  }
  return Step::none;
}

Clock::time_point Wait::next_check(Clock::time_point now) const {
  if (m_is_behind) {
    return now;
  }
  auto next = m_deadline;
  if (!m_concluded && m_port) {
    next = std::min(next, m_next_port_check);
  }
  if (!m_concluded && m_idle) {
    next = std::min(next, m_next_idle_check);
  }
  return next;
}

void Wait::conclude(WaitOutcome outcome, Clock::time_point now) {
  m_concluded = outcome;
  m_deadline = now + k_keeper_patience;
}

void Wait::shorten_port_delay(milliseconds age) {
  m_earliest_foreign_port -= std::clamp(age, milliseconds(0), k_foreign_port_delay);
}

void Wait::postpone_port_check(Clock::time_point now) {
  m_next_port_check = std::min(now + k_foreign_port_interval, m_earliest_foreign_port);
}

}  // namespace dockbridge::agent
