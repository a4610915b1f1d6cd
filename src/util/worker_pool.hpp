#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>

#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge {

/// Runs jobs side by side on threads that it makes as they are needed, up to a limit, and lets go of when idle.
class WorkerPool {
 public:
  explicit WorkerPool(std::size_t max_threads) : m_max_threads(max_threads) {}
  /// Waits for the jobs that run.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False, and nothing done, if every thread is busy and there may be no more of them.
  bool submit(std::function<void()> job);
  /// Whether all jobs were done by then.
  bool wait_until_idle(Deadline deadline);

 private:
  void work();

  const std::size_t m_max_threads;
  Mutex m_mutex;
  std::condition_variable m_wanted;  // there is a job, or the end has come
  std::condition_variable m_rested;  // a thread has finished its job, or ended
  std::deque<std::function<void()>> m_jobs GUARDED_BY(m_mutex);
  std::size_t m_threads GUARDED_BY(m_mutex) = 0;
  std::size_t m_idle GUARDED_BY(m_mutex) = 0;
  bool m_stopping GUARDED_BY(m_mutex) = false;
};

}  // namespace dockbridge
