#include "tools/following.hpp"

#include <fmt/format.h>

#include "util/text.hpp"

namespace dockbridge::tools {

namespace {

constexpr milliseconds k_progress_interval{2000};

std::string progress_message(const wire::ProcessState& state, Clock::duration waited) {
  return fmt::format("{} for {} s, {} of output", state.paused ? "paused" : "running",
                     std::chrono::duration_cast<seconds>(waited).count(),
                     human_bytes(state.out.total + state.err.total));
}

}  // namespace

milliseconds longest_wait(const ToolCall& call) {
  return call.context.report_progress ? call.settings.max_wait
                                      : std::min(call.settings.max_wait, call.settings.client_timeout);
}

Following::Following(const ToolCall& call, sandbox::Until until, milliseconds patience)
    : m_call(call), m_until(std::move(until)), m_deadline(Deadline::after(patience)) {
  if (m_until.idle && call.settings.load_stretch > 1) {
    m_until.longest_idle = std::chrono::duration_cast<milliseconds>(*m_until.idle * call.settings.load_stretch);
  }
}

milliseconds Following::slice() const {
  const milliseconds left = m_deadline.remaining();
  return m_call.context.report_progress ? std::min(left, k_progress_interval) : left;
}

Result<sandbox::Snapshot> Following::start(const sandbox::StartRequest& request) {
  return go_on(m_call.sandbox.start(request, slice(), m_until, m_call.context.interruption.token()));
}

Result<sandbox::Snapshot> Following::join(const std::string& process) {
  return go_on(m_call.sandbox.wait(process, slice(), m_until, m_call.context.interruption.token()));
}

Result<sandbox::Snapshot> Following::go_on(Result<sandbox::Snapshot> snapshot) {
  while (snapshot && snapshot->happened == wire::Happened::nothing && !m_deadline.passed()) {
    if (m_call.context.report_progress) {
      m_call.context.report_progress(progress_message(snapshot->state, Clock::now() - m_began));
    }
    if (m_until.pattern) {
      m_until.search_from = snapshot->searched;
    }
    auto later = m_call.sandbox.wait(snapshot->state.id, slice(), m_until, m_call.context.interruption.token());
    snapshot = std::move(later);
  }
  return snapshot;
}

}  // namespace dockbridge::tools
