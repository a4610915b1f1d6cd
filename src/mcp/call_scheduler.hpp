#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "mcp/call_admission.hpp"
#include "mcp/message_memory.hpp"
#include "mcp/metrics.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"
#include "util/wakeup.hpp"
#include "util/worker_pool.hpp"

namespace dockbridge::mcp {

class Call;

/// The owner of a call, and what the call uses until it has ended.
struct CallOrigin {
  std::string owner;
  std::size_t owner_limit;  ///< limit of running calls of this owner
  std::shared_ptr<MessageMemory::Claim> memory{};
};

/// Whether calls lack capacity.
struct CallLoad {
  std::size_t waiting = 0;
  bool has_rejected_lately = false;
  /// Why the server is degraded. Empty if it is not.
  [[nodiscard]] std::string reason() const;
};

/// Makes calls on pool threads. A call beyond a limit waits in a bounded queue, and is refused if it waits too long, if
/// its client cancels it, or if the server stops. While calls wait, one more pool thread minds the queue; waiting calls
/// have no thread. A thread that has made a call makes the next one, so waiting costs no handover. Any thread may call.
class CallScheduler {
 public:
  /// `metrics` outlives this object.
  CallScheduler(const CallAdmission::Limits& limits, Metrics& metrics);
  /// Refuses the waiting calls, and waits for those that run.
  ~CallScheduler();
  CallScheduler(const CallScheduler&) = delete;
  CallScheduler& operator=(const CallScheduler&) = delete;

  /// Makes or refuses the call, now or later.
  void submit(std::shared_ptr<Call> call, CallOrigin origin);
  /// Refuses a call whose message exceeds the memory limit.
  void reject_size(Call& call);
  /// Counts a message that was refused before it was read, because of the memory limit.
  void note_size_rejection();
  /// Refuses the waiting calls, and all that are submitted from now on.
  void stop();
  /// Whether all calls have ended before the deadline.
  bool wait_until_idle(Deadline deadline) { return m_pool.wait_until_idle(deadline); }
  [[nodiscard]] CallLoad load(Clock::time_point now) const;

 private:
  using Ticket = CallAdmission::Ticket;
  struct Job {
    std::shared_ptr<Call> call;
    CallOrigin origin;
    std::optional<milliseconds> waited{};  ///< nullopt: it did not wait
  };
  struct WakeMinder {
    const Wakeup& wakeup;
    void operator()() const { wakeup.wake(); }
  };
  struct Waiting {
    Waiting(Job the_job, Clock::time_point the_arrival, const Wakeup& wakeup);
    Job job;
    const Clock::time_point arrival;
    const std::stop_callback<WakeMinder> interrupted;
  };
  /// What to do after the lock was released.
  struct Actions {
    std::vector<Job> started{};
    std::vector<Job> expired{};
    std::vector<Job> dropped{};  ///< cancelled by the client, or the server is stopping
    std::vector<std::pair<CallAdmission::Report, std::shared_ptr<Call>>> reports{};
  };

  void launch(Job job);
  void run(Job job);
  std::optional<Job> next_after(const std::string& owner);
  std::optional<Job> start_next(Clock::time_point now) REQUIRES(m_mutex);
  Job take(Ticket ticket) REQUIRES(m_mutex);
  /// Starts the thread that minds the queue. False if there is none.
  bool ensure_minder();
  void mind_queue();
  Actions due_actions(Clock::time_point now) REQUIRES(m_mutex);
  void perform(Actions actions);
  void report(const CallAdmission::Report& report, Call& call);

  const CallAdmission::Limits m_limits;
  Metrics& m_metrics;
  const Wakeup m_wakeup;  // for the thread that minds the queue
  mutable Mutex m_mutex;
  CallAdmission m_admission GUARDED_BY(m_mutex);
  std::map<Ticket, Waiting> m_waiting GUARDED_BY(m_mutex);
  bool m_has_minder GUARDED_BY(m_mutex) = false;
  bool m_stopping GUARDED_BY(m_mutex) = false;
  WorkerPool m_pool;  // the last member: its threads use the others
};

}  // namespace dockbridge::mcp
