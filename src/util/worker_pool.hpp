#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>

#include "util/clock.hpp"
#include "util/mutex.hpp"

namespace dockbridge {

/// Runs jobs concurrently. Creates threads on demand, up to a limit, and ends idle threads.
class WorkerPool {
 public:
  explicit WorkerPool(std::size_t max_threads) : m_max_threads(max_threads) {}
  /// Waits for the running jobs.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False if the limit is reached and every thread is busy. The job is then dropped.
  bool submit(std::function<void()> job);
  /// Whether all jobs ended before the deadline.
  bool wait_until_idle(Deadline deadline);

 private:
  void work();

  const std::size_t m_max_threads;
  Mutex m_mutex;
  std::condition_variable m_wanted;  // a job was submitted, or the pool is stopping
  std::condition_variable m_rested;  // a thread has finished its job, or ended
  std::deque<std::function<void()>> m_jobs GUARDED_BY(m_mutex);
  std::size_t m_threads GUARDED_BY(m_mutex) = 0;
  std::size_t m_idle GUARDED_BY(m_mutex) = 0;
  bool m_stopping GUARDED_BY(m_mutex) = false;
};

}  // namespace dockbridge
