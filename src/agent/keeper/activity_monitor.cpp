#include "agent/keeper/activity_monitor.hpp"

#include <algorithm>
#include <utility>

#include "agent/keeper/input_judgement.hpp"
#include "agent/keeper/usage.hpp"

namespace dockbridge::agent {

namespace {

/// Time from the last activity to the first examination, and the same while a link watches for an answer.
constexpr milliseconds k_first_interval{100};
constexpr milliseconds k_first_answer_interval{2};
constexpr milliseconds k_max_interval{2000};

}  // namespace

void ActivityMonitor::begin(Clock::time_point now) {
  note_activity(now);
  m_starvation.note(now, {});  // its threads have not waited for a CPU before this
}

milliseconds ActivityMonitor::first_interval() const {
  return m_links.is_watched_for(k_watch_answer) ? k_first_answer_interval : k_first_interval;
}

void ActivityMonitor::note_activity(Clock::time_point now) {
  m_last_activity = now;
  m_starvation.reset();
  m_last_examination = now;
  m_interval = first_interval();
  m_waits_for_input = wire::WaitsForInput::no;
  m_has_answered = false;
}

void ActivityMonitor::note_output(std::string_view bytes, Clock::time_point now) {
  m_output_end.append(bytes);
  note_activity(now);
}

void ActivityMonitor::note_end() {
  m_waits_for_input = wire::WaitsForInput::no;
  m_has_answered = false;
  m_used = {};
  m_processes = 0;
}

void ActivityMonitor::restart_intervals() {
  m_interval = m_links.is_watched_for(k_watch_answer) ? k_first_answer_interval : m_interval;
}

void ActivityMonitor::note_examination(Clock::time_point now, TreeState tree) {
  const auto since_last = now - std::exchange(m_last_examination, now);
  m_used = tree.used;
  m_processes = tree.processes;
  if (tree.cpu_waits) {
    m_starvation.note(now, std::move(*tree.cpu_waits));
  }
  m_is_paused = tree.is_paused;
  if (m_is_paused) {
    m_last_activity += since_last;
  }
  const auto silence = std::chrono::duration_cast<milliseconds>(now - m_last_activity);
  const InputJudgement judgement = judge_input(tree.input_wait, m_output_end, silence);
  m_waits_for_input = judgement.waits;
  m_has_answered = judgement.has_answered;
  m_interval = std::clamp(m_interval * 2, first_interval(), k_max_interval);
  m_interval = std::min(m_interval, judgement.recheck_after.value_or(m_interval));
}

std::uint32_t ActivityMonitor::events() const {
  return (m_waits_for_input == wire::WaitsForInput::yes ? k_watch_input : 0) | (m_has_answered ? k_watch_answer : 0);
}

void ActivityMonitor::describe(StatePacket& state, Clock::time_point now) const {
  state.waits_for_input = static_cast<std::uint8_t>(m_waits_for_input);
  state.paused = m_is_paused ? 1 : 0;
  state.answered = m_has_answered ? 1 : 0;
  state.children = m_processes;
  state.used = sum_of(state.used, m_used);
  const auto idle = std::chrono::duration_cast<milliseconds>(now - m_last_activity);
  state.idle_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, idle.count()));
  state.starved_ms = static_cast<std::uint64_t>(m_starvation.total().count());
}

}  // namespace dockbridge::agent
