#include "mcp/call_scheduler.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "mcp/call.hpp"

namespace dockbridge::mcp {

namespace {

/// For a shortage that ends with any other call, at an unknown time.
constexpr seconds k_shortest_retry{1};

/// Each running call has a thread, and each waiting one for as long as it is being reported or refused. A thread that
/// has ended its last call is busy for a moment more.
std::size_t max_threads(const CallAdmission::Limits& limits) {
  return 2 * limits.calls + limits.waiting + 1;
}

}  // namespace

std::string CallLoad::reason() const {
  std::string text = waiting == 0   ? ""
                     : waiting == 1 ? "1 call waits for capacity"
                                    : fmt::format("{} calls wait for capacity", waiting);
  if (has_rejected_lately) {
    text += (text.empty() ? "" : "; ") + std::string("calls were rejected for lack of capacity in the last 10 s");
  }
  return text;
}

CallScheduler::Waiting::Waiting(Job the_job, Clock::time_point the_arrival, const Wakeup& wakeup)
    : job(std::move(the_job)),
      arrival(the_arrival),
      interrupted(job.call->interruption().token(), WakeMinder{wakeup}) {}

CallScheduler::CallScheduler(const CallAdmission::Limits& limits, Metrics& metrics)
    : m_limits(limits), m_metrics(metrics), m_admission(limits), m_pool(max_threads(limits)) {}

CallScheduler::~CallScheduler() {
  stop();
}

void CallScheduler::submit(std::shared_ptr<Call> call, CallOrigin origin) {
  const Clock::time_point now = Clock::now();
  Job job{std::move(call), std::move(origin)};
  const std::size_t bytes = job.origin.memory ? job.origin.memory->bytes() : 0;
  MutexLock lock(m_mutex);
  if (m_stopping) {
    lock.unlock();
    job.call->refuse({Refusal::Reason::stopping});
    return;
  }
  const auto arrival =
      m_admission.arrive({job.origin.owner, job.origin.owner_limit, bytes, job.call->wants_progress()}, now);
  switch (arrival.decision) {
    case CallAdmission::Decision::run:
      lock.unlock();
      launch(std::move(job));
      return;
    case CallAdmission::Decision::reject: {
      const seconds retry_after = m_admission.retry_after(now);
      lock.unlock();
      m_metrics.count_rejected_call("queue full");
      job.call->refuse({Refusal::Reason::queue_full, retry_after});
      return;
    }
    case CallAdmission::Decision::wait:
      m_waiting.try_emplace(arrival.ticket, std::move(job), now, m_wakeup);
      m_metrics.set_waiting_calls(m_waiting.size());
      lock.unlock();
      if (!ensure_minder()) {
        // The system has no thread left. The call would wait without a limit.
        lock.lock();
        if (m_waiting.contains(arrival.ticket)) {
          m_admission.leave(arrival.ticket);
          Job refused = take(arrival.ticket);
          lock.unlock();
          refused.call->refuse({Refusal::Reason::queue_full, k_shortest_retry});
        }
      }
      return;
  }
}

void CallScheduler::reject_size(Call& call) {
  note_size_rejection();
  call.refuse({Refusal::Reason::too_large, k_shortest_retry});
}

void CallScheduler::note_size_rejection() {
  m_metrics.count_rejected_call("memory");
  const MutexLock lock(m_mutex);
  m_admission.note_rejection(Clock::now());
}

void CallScheduler::stop() {
  {
    const MutexLock lock(m_mutex);
    m_stopping = true;
  }
  m_wakeup.wake();
}

CallLoad CallScheduler::load(Clock::time_point now) const {
  const MutexLock lock(m_mutex);
  return {m_admission.waiting(), m_admission.has_rejected_lately(now)};
}

void CallScheduler::launch(Job job) {
  const auto shared = std::make_shared<Job>(std::move(job));  // a job that the pool rejects is still needed
  if (m_pool.submit([this, shared] { run(std::move(*shared)); })) {
    return;
  }
  shared->call->refuse({Refusal::Reason::queue_full, k_shortest_retry});
  const MutexLock lock(m_mutex);
  m_admission.end(shared->origin.owner);
}

void CallScheduler::run(Job job) {
  std::optional<Job> next = std::move(job);
  while (next) {
    if (next->waited) {
      m_metrics.count_waited_call(*next->waited);
      next->call->note_wait(*next->waited);
    }
    if (next->waited && next->call->interruption().reason() != StopReason::none) {
      next->call->refuse({Refusal::Reason::stopping});  // it was interrupted before the queue was minded
    } else {
      next->call->make();
    }
    const std::string owner = next->origin.owner;
    next.reset();  // releases its memory and its place before another one starts
    next = next_after(owner);
  }
}

std::optional<CallScheduler::Job> CallScheduler::next_after(const std::string& owner) {
  const MutexLock lock(m_mutex);
  m_admission.end(owner);
  return start_next(Clock::now());
}

std::optional<CallScheduler::Job> CallScheduler::start_next(Clock::time_point now) {
  const auto ticket = m_stopping ? std::nullopt : m_admission.start_next();
  if (!ticket) {
    return std::nullopt;
  }
  const auto waited = std::chrono::duration_cast<milliseconds>(now - m_waiting.at(*ticket).arrival);
  Job job = take(*ticket);
  job.waited = waited;
  return job;
}

CallScheduler::Job CallScheduler::take(Ticket ticket) {
  const auto found = m_waiting.find(ticket);
  Job job = std::move(found->second.job);
  m_waiting.erase(found);
  m_metrics.set_waiting_calls(m_waiting.size());
  if (m_waiting.empty()) {
    m_wakeup.wake();  // the thread that minds the queue ends
  }
  return job;
}

bool CallScheduler::ensure_minder() {
  {
    const MutexLock lock(m_mutex);
    if (m_has_minder) {
      m_wakeup.wake();  // the new call may be due earlier than the others
      return true;
    }
    m_has_minder = true;
  }
  if (m_pool.submit([this] { mind_queue(); })) {
    return true;
  }
  const MutexLock lock(m_mutex);
  m_has_minder = false;
  return false;
}

void CallScheduler::mind_queue() {
  while (true) {
    m_wakeup.reset();
    MutexLock lock(m_mutex);
    const Clock::time_point now = Clock::now();
    Actions actions = due_actions(now);
    const bool is_last = m_waiting.empty();
    if (is_last) {
      m_has_minder = false;
    }
    const auto next = m_admission.next_event();
    lock.unlock();
    perform(std::move(actions));
    if (is_last) {
      return;
    }
    pollfd polled{m_wakeup.fd(), POLLIN, 0};
    ::poll(&polled, 1, next ? static_cast<int>(Deadline::at(*next).remaining().count()) : -1);
  }
}

CallScheduler::Actions CallScheduler::due_actions(Clock::time_point now) {
  Actions actions;
  std::vector<Ticket> interrupted;
  for (const auto& [ticket, waiting] : m_waiting) {
    if ((m_stopping || waiting.job.call->interruption().reason() != StopReason::none) && !m_admission.is_held(ticket)) {
      interrupted.push_back(ticket);
    }
  }
  for (const Ticket ticket : interrupted) {
    m_admission.leave(ticket);
    actions.dropped.push_back(take(ticket));
  }
  // After a held call is released, no thread that ends a call may come to start it.
  while (auto job = start_next(now)) {
    actions.started.push_back(std::move(*job));
  }
  for (const Ticket ticket : m_admission.expired(now)) {
    m_admission.leave(ticket);
    m_admission.note_rejection(now);
    actions.expired.push_back(take(ticket));
  }
  for (const auto& report : m_admission.take_reports(now)) {
    // Held, so that the call is not answered while its position is being sent.
    m_admission.hold(report.ticket, true);
    actions.reports.emplace_back(report, m_waiting.at(report.ticket).job.call);
  }
  return actions;
}

void CallScheduler::perform(Actions actions) {
  for (Job& job : actions.started) {
    launch(std::move(job));
  }
  // A client that does not read may block each of these. That must not delay the calls of others.
  const auto send = [this](const std::function<void()>& sends) {
    if (!m_pool.submit(sends)) {
      sends();
    }
  };
  const auto refuse = [&](const Job& job, Refusal refusal) {
    send([call = job.call, memory = job.origin.memory, refusal] { call->refuse(refusal); });
  };
  for (const Job& job : actions.dropped) {
    refuse(job, {Refusal::Reason::stopping});
  }
  for (const Job& job : actions.expired) {
    m_metrics.count_rejected_call("waited too long");
    refuse(job, {Refusal::Reason::waited, std::chrono::ceil<seconds>(m_limits.max_wait)});
  }
  for (const auto& [report, call] : actions.reports) {
    send([this, report = report, call = call] { this->report(report, *call); });
  }
}

void CallScheduler::report(const CallAdmission::Report& report, Call& call) {
  call.report_position(report.position);
  {
    const MutexLock lock(m_mutex);
    m_admission.hold(report.ticket, false);
  }
  m_wakeup.wake();
}

}  // namespace dockbridge::mcp
