#include "tools/following.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/client_patience.hpp"
#include "tools/view.hpp"
#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

using sandbox::Snapshot;
using wire::WaitOutcome;

constexpr std::size_t k_max_report_bytes = 2000;
/// Progress that takes longer to collect is not reported.
constexpr milliseconds k_news_patience{2000};

std::string heartbeat(const wire::ProcessState& state, Clock::duration waited) {
  return fmt::format("{} for {} s, {} of output", state.paused ? "paused" : "running",
                     std::chrono::duration_cast<seconds>(waited).count(),
                     human_bytes(state.out.total + state.err.total));
}

/// Whether a long wait is divided, to report progress or to make the call a task.
bool needs_checks(const mcp::CallContext& context) {
  return context.wants_progress() || context.task_mode == mcp::TaskMode::when_long;
}

}  // namespace

milliseconds longest_wait(const ToolRequest& call) {
  const Settings& settings = call.settings;
  const std::string& client = call.context.client_name;
  // The client counts the time for which the call has waited for capacity.
  const auto rest = [&](milliseconds longest) { return std::max(longest - call.context.waited, milliseconds(0)); };
  if (const auto chosen = find_client_wait(settings.client_waits, client)) {
    return rest(std::min(settings.max_wait, *chosen));
  }
  const milliseconds known = find_client_wait(known_client_waits(), client).value_or(settings.max_wait);
  return rest(
      std::min({settings.max_wait, known, call.context.outlasts_client_timeout() ? known : settings.client_timeout}));
}

Following::Following(const ToolRequest& call, wire::WaitCondition until, milliseconds patience, Pace pace)
    : m_call(call),
      m_limit(call.limit(patience)),
      m_until(std::move(until)),
      m_deadline(Deadline::after(patience)),
      m_pace(pace) {
  if (m_until.idle && call.settings.load_stretch > 1) {
    m_until.longest_idle = std::chrono::duration_cast<milliseconds>(*m_until.idle * call.settings.load_stretch);
  }
}

milliseconds Following::slice() const {
  const milliseconds left = m_deadline.remaining();
  if (m_call.context.progress_detail == mcp::ProgressDetail::output) {
    return std::min(left, m_phase == Phase::listening ? m_pace.heartbeat - m_pace.output : m_pace.output);
  }
  return needs_checks(m_call.context) ? std::min(left, m_pace.heartbeat) : left;
}

Result<Snapshot> Following::start(const sandbox::StartRequest& request) {
  return follow(m_call.sandbox.processes().start(request, slice(), m_until, m_limit));
}

Result<Snapshot> Following::join(const wire::ProcessState& now) {
  m_reported = {now.out.total, now.err.total};
  m_seen = {now.out.total, now.err.total};
  return follow(m_call.sandbox.processes().wait(now.id, slice(), m_until, m_limit));
}

Result<Snapshot> Following::follow(Result<Snapshot> snapshot) {
  const auto continues = [&] {
    return snapshot && (snapshot->happened == WaitOutcome::nothing || snapshot->happened == WaitOutcome::grew);
  };
  while (continues() && !m_deadline.passed()) {
    m_call.context.become_task_if_due(Clock::now());
    if (m_call.context.progress_detail == mcp::ProgressDetail::output) {
      report_output(*snapshot);
    } else {
      report_heartbeat(*snapshot);
    }
    if (m_until.pattern) {
      m_until.search_from = snapshot->searched.value_or(sandbox::Offsets{});
    }
    auto later = m_call.sandbox.processes().wait(snapshot->state.id, slice(), m_until, m_limit);
    snapshot = std::move(later);
  }
  if (continues()) {
    snapshot->happened = WaitOutcome::nothing;  // growth ends a slice, not the caller's wait
  }
  return snapshot;
}

void Following::pause() {
  m_phase = Phase::pause;
  m_until.known.reset();
}

void Following::listen(const sandbox::Offsets& known) {
  m_phase = Phase::listening;
  m_until.known = known;
}

void Following::report_heartbeat(const Snapshot& snapshot) {
  m_call.context.report_progress(heartbeat(snapshot.state, Clock::now() - m_began));
}

void Following::report_output(const Snapshot& snapshot) {
  const sandbox::Offsets now{snapshot.state.out.total, snapshot.state.err.total};
  if (m_phase == Phase::pause && now == m_seen) {
    listen(now);
    return;
  }
  pause();
  const std::string message = now != m_seen ? news(snapshot) : "";
  m_seen = now;
  if (message.empty()) {
    report_heartbeat(snapshot);
  } else {
    m_call.context.report_progress(message);
  }
}

std::string Following::news(const Snapshot& snapshot) {
  OutputRequest request;
  request.max_bytes = k_max_report_bytes;
  request.since = m_reported;
  request.latest = true;
  auto output = collect_output(m_call.sandbox, snapshot, request, m_limit.capped(k_news_patience));
  if (!output) {
    return "";  // the reply reports the error
  }
  m_reported = output->cursor();
  View view;
  view.output = std::move(*output);
  return view_text(view);
}

Result<Snapshot> follow_any(const ToolRequest& call, const std::vector<std::string>& processes,
                            const wire::WaitCondition& until, milliseconds patience) {
  const auto limit = call.limit(patience);
  const auto deadline = Deadline::after(patience);
  const milliseconds longest = needs_checks(call.context) ? Following::Pace{}.heartbeat : patience;
  while (true) {
    auto snapshot =
        call.sandbox.processes().wait_for_any(processes, std::min(deadline.remaining(), longest), until, limit);
    if (!snapshot || snapshot->happened != WaitOutcome::nothing || deadline.passed()) {
      return snapshot;
    }
    call.context.become_task_if_due(Clock::now());
    call.context.report_progress(fmt::format("waiting for {} processes", processes.size()));
  }
}

}  // namespace dockbridge::tools
